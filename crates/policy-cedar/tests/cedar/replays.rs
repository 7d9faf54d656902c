//! Equal inputs give equal bytes (spec 9.2).

use cl_model::policy::Assurance;

use crate::support::{Setting, compile, outcome, request};

#[test]
fn a_thousand_decisions_repeat_bit_for_bit() {
    let policies = [
        (
            "all",
            "permit (principal, action, resource) when { context.assurance_level > 1 };",
        ),
        (
            "a",
            "@approval @reason(\"A\") forbid (principal, action, resource == Predicate::\"budget\");",
        ),
        (
            "b",
            "@transform(\"redact:b,redact:a\") @reason(\"B\") forbid (principal, action, resource == Predicate::\"contact\");",
        ),
        (
            "c",
            "@transform(\"compress:task-facts\") @max_retention(\"60\") @reason(\"C\") forbid (principal, action, resource);",
        ),
        (
            "d",
            "@reason(\"D\") forbid (principal, action, resource == Operation::\"pay\");",
        ),
    ];
    let scopes = [
        &["city"][..],
        &["city", "contact"],
        &["budget", "contact", "city"],
        &["secret", "unknown"],
    ];
    let actions = [&["draft"][..], &["draft", "pay"], &["send"], &["pay"]];
    let [first, second] = [compile(&policies), compile(&policies)];
    let mut decisions = 0;
    for round in 0..16_i64 {
        for scope in scopes {
            for action in actions {
                let mut asked = request(scope, action);
                asked["retention"]["max_seconds"] = (30 + round * 10).into();
                for assurance in Assurance::ALL {
                    for setting in [Setting::default(), Setting::default().approving()] {
                        let setting = Setting {
                            assurance: *assurance,
                            ..setting
                        };
                        let recorded = outcome(&first, &asked, &setting);
                        let repeated = outcome(&second, &asked, &setting);
                        assert_eq!(recorded.record.text(), repeated.record.text());
                        assert_eq!(recorded.limits, repeated.limits);
                        decisions += 1;
                    }
                }
            }
        }
    }
    assert!(decisions >= 1000, "{decisions}");
}
