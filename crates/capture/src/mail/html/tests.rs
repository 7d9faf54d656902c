use super::*;

#[test]
fn keeps_what_a_reader_sees() {
    let rows = [
        ("<p>One</p><p>Two &amp; three</p>", "One\n\nTwo & three"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<div>a</div><div>b  c\n d</div>", "a\nb c d"),
        (
            "<table><tr><td>Total</td><td>EUR&nbsp;5</td></tr></table>",
            "Total EUR\u{a0}5",
        ),
        (
            "Yes<blockquote>Do <b>you</b>?<br>Now?</blockquote>No",
            "Yes\n> Do you?\n> Now?\nNo",
        ),
        (
            "<head><title>t</title><style>p{color:red}</style></head><body>x</body>",
            "x",
        ),
        ("a < b and <3", "a < b and <3"),
        ("<a title='x > y' href=z>link</a>", "link"),
        ("<script>if (a<b) alert('</p>')</script>x", "x"),
        ("&#8364;5 &#xA3;6 &nope; &", "€5 £6 &nope; &"),
        (
            "escribi&oacute;: &Agrave; &#58; &yuml;&colon;",
            "escribió: À : ÿ:",
        ),
        ("<td>EUR 1</td><td>200.00</td>", "EUR 1 | 200.00"),
        (
            "EUR 99<sup>50</sup> or 12<sup>th</sup>",
            "EUR 99^50 or 12th",
        ),
        (
            "a<hr><div id='divRplyFwdMsg'>From: b</div><div>c</div>",
            "a\n> From: b\n> c",
        ),
        ("a<div class='protonmail_quote'>b</div>c", "a\n> b\nc"),
        ("Pay <s>EUR 5</s> <del>now</del> later", "Pay later"),
        (
            "<body bgcolor=black><font color=white>shown</font>",
            "shown",
        ),
        (
            "<div style='font-size:0'><p style='font-size:13px'>shown</p></div>",
            "shown",
        ),
        (
            "<div style='color:#fff'><p style='color:#333'>shown</p></div>",
            "shown",
        ),
        (
            "<div style='color:#fff'><p style='background:#036'>shown</p></div>",
            "shown",
        ),
        ("<dialog open>shown</dialog>", "shown"),
        ("<i style='color:#ccc'>shown</i>", "shown"),
        ("He said <q>pay</q> twice", "He said “pay” twice"),
        ("a<hr id=zwchr>b", "a\n> b"),
        ("a<div data-marker='__QUOTED_TEXT__'>b</div>", "a\n> b"),
        ("<i aria-hidden=false>shown</i>", "shown"),
        (
            "<details><summary>More</summary>shown</details>",
            "More\nshown",
        ),
    ];
    for (html, text) in rows {
        assert_eq!(visible(html).text.trim(), text, "{html}");
    }
}

#[test]
fn leaves_out_what_is_hidden() {
    for hidden in [
        "<span style='display:none'>H</span>",
        "<span style=\"DISPLAY : NONE !important\">H</span>",
        "<span hidden>H</span>",
        "<div style='visibility:hidden'><b>H</b></div>",
        "<span style='font-size:0px'>H</span>",
        "<span style='font-size:1px'>H</span>",
        "<span style='opacity:0'>H</span>",
        "<span style='color:#ffffff'>H</span>",
        "<font color=white>H</font>",
        "<span style='color:#fff;background:#fff'>H</span>",
        "<span style='mso-hide:all'>H</span>",
        "<div style='height:0;overflow:hidden'>H</div>",
        "<div style='position:absolute;left:-9999px'>H</div>",
        "<style>.x{display:none}</style><i class='y x'>H</i>",
        "<span style='color:#123456;background-color:#123456'>H</span>",
        "<span style='color:#abc; background:#aabbcc'>H</span>",
        "<span style='transform:scale(0)'>H</span>",
        "<span style='clip-path:inset(100%)'>H</span>",
        "<span style='filter:opacity(0)'>H</span>",
        "<span style='display:n\\6fne'>H</span>",
        "<span style='d\\69splay:none'>H</span>",
        "<span style='dis/**/play:none'>H</span>",
        "<span style='display&#58;none'>H</span>",
        "<span style='font:0/0 a'>H</span>",
        "<span style='font-size:0.05em'>H</span>",
        "<span style='font-size:calc(0px)'>H</span>",
        "<span style='line-height:0;overflow:hidden'>H</span>",
        "<span style='height:0;overflow:clip'>H</span>",
        "<span style='opacity:0%'>H</span>",
        "<span style='filter:alpha(opacity=0)'>H</span>",
        "<span style='color:rgb(254,254,254)'>H</span>",
        "<span style='color:hsl(0,0%,100%)'>H</span>",
        "<span style='color:rgba(0,0,0,0)'>H</span>",
        "<span style='color:#00000000'>H</span>",
        "<span style='-webkit-text-fill-color:transparent'>H</span>",
        "<span style='position:absolute;right:-2000px'>H</span>",
        "<span style='position:absolute;left:99999px'>H</span>",
        "<span style='transform:translateX(-9999px)'>H</span>",
        "<span style='zoom:0.01'>H</span>",
        "<div style='font-size:0'><i style='font-size:2em'>H</i></div>",
        "<iframe>H</iframe>",
        "<dialog>H</dialog>",
        "<i aria-hidden=true>H</i>",
        "<i style='text-decoration:line-through'>H</i>",
        "<math><annotation>H</annotation></math>",
        "<style>#x{display:none}</style><i id=x>H</i>",
        "<style>i#x{display:none}</style><i id=x>H</i>",
        "<style>em{display:none}</style><em>H</em>",
        "<div style='background:#123456'><i style='color:#123456'>H</i></div>",
        "<table bgcolor='#123456'><tr><td><font color=#123456>H</font></td></tr></table>",
        "<div style='color:rgb(18,52,86)'><i style='background:#123456'>H</i></div>",
        "<div style='color:#fff'><i>H</i></div>",
        "<div style='background:#123456'><i style='color:#123458'>H</i></div>",
        "<i style='color:#f0f0f0'>H</i>",
        "<div style='background:navy'><i style='color:#000080'>H</i></div>",
        "<i style='background:url(x.png) #123456;color:#123456'>H</i>",
        "<i style='color:rgb(0 0 0 / 0)'>H</i>",
        "<i style='letter-spacing:-1em'>H</i>",
        "<i style='display&colon;none'>H</i>",
        "<i popover>H</i>",
        "<style><!-- .x{display:none} --></style><i class=x>H</i>",
        "<style>@import url(x.css); .x/* b */{/* c */display:none}</style><i class=x>H</i>",
        "<style>.x{display:none}</style><i class='&#120;'>H</i>",
        "<style>@media all{ span.x , p { font-size: 0 } }</style><span class=x>H</span>",
    ] {
        let seen = visible(&format!("<p>a</p>{hidden}<p>b</p>"));
        assert_eq!(
            seen.text.split_whitespace().collect::<Vec<_>>(),
            ["a", "b"],
            "{hidden}"
        );
        assert!(seen.has_hidden, "{hidden}");
    }
    assert!(!visible("<head>x</head><p>a</p>").has_hidden);
}

#[test]
fn says_that_a_rule_which_hides_was_not_read() {
    for selector in [".o .x", ".x.y", "[data-k]", "p:not(.v)"] {
        let html = format!("<style>{selector}{{display:none}}</style><p>a</p>");
        assert!(visible(&html).has_unread_rules, "{selector}");
    }
    assert!(visible("<i style='display:var(--x)'>a</i>").has_unread_rules);
    for sheet in [
        ".x{display:none}",
        "#x{color:red}",
        "p{font:400 12px/1.5 a}",
    ] {
        let html = format!("<style>{sheet}</style><p>a</p>");
        assert!(!visible(&html).has_unread_rules, "{sheet}");
    }
}

#[test]
fn survives_broken_markup() {
    for html in [
        "<",
        "<a",
        "<a href=\"",
        "</",
        "<!--",
        "<p <b>x",
        "</p></p>",
        "&#xffffffff;",
        "<style>.",
        "<é>",
    ] {
        let _ = visible(html);
    }
    let deep = visible(&"<div>".repeat(100_000));
    assert!(deep.text.is_empty());
}

#[test]
fn a_tag_that_never_ends_hides_the_rest_at_once() {
    let endless = format!("seen{}", r#"<a ="" =">"#.repeat(100_000));
    let visible = visible(&endless);
    assert_eq!(visible.text, "seen");
    assert!(visible.has_hidden);
}
