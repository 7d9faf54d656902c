//! A large mailbox in the proportions of real ones, the same each time.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use data_encoding::BASE64;

const SENTENCES: [&str; 8] = [
    "Could you send the revised quote by 12 March 2030?",
    "The samples are with the printer, and I will let you know when they arrive.",
    "Please deliver the second batch by Friday, the first one is fine as it is.",
    "The amount due is 1,284.50 EUR, payable within thirty days.",
    "As discussed, the wording on the cover changes and the rest stays.",
    "I have added Priya to the conversation, who looks after the schedule.",
    "There is no hurry with the index, next month is early enough.",
    "Let us talk about the shipping costs once the weights are known.",
];

const LINE_BYTES: usize = 57;

/// Writes whole messages until the file has this size, and gives their number.
///
/// Of 20 messages 12 are plain text, 5 have an HTML alternative, and 3 have an attachment.
pub(crate) fn write(path: &Path, bytes: u64) -> io::Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    let (mut written, mut messages) = (0, 0);
    let mut noise = Noise(1);
    while written < bytes {
        let message = message(messages, &mut noise);
        file.write_all(&message)?;
        written += message.len() as u64;
        messages += 1;
    }
    file.flush()?;
    Ok(messages)
}

fn message(number: u64, noise: &mut Noise) -> Vec<u8> {
    let (day, minute) = (1 + number % 28, number % 60);
    let mut message = format!(
        "From person{sender}@partner.example Mon Mar {day:2} 09:{minute:02}:00 2030\n\
         Received: from mx.partner.example (mx.partner.example [192.0.2.7]) by mail.example;\n\
         \tMon, {day:02} Mar 2030 09:{minute:02}:00 +0000\n\
         From: Person {sender} <person{sender}@partner.example>\n\
         To: Mira Solberg <mira@solberg.example>\n\
         Date: Mon, {day:02} Mar 2030 09:{minute:02}:00 +0000\n\
         Message-ID: <bench-{number}@partner.example>\n\
         Subject: Schedule of item {number}\n\
         MIME-Version: 1.0\n",
        sender = number % 97,
    )
    .into_bytes();
    let boundary = format!("part-{number}");
    match number % 20 {
        0..12 => {
            plain_part(&mut message, 1_000 + noise.below(5_000), noise);
        }
        12..17 => {
            multipart(&mut message, "alternative", &boundary);
            plain_part(&mut message, 1_000 + noise.below(5_000), noise);
            separator(&mut message, &boundary, "");
            html_part(&mut message, 8_000 + noise.below(30_000), noise);
            separator(&mut message, &boundary, "--");
        }
        _ => {
            multipart(&mut message, "mixed", &boundary);
            plain_part(&mut message, 1_000 + noise.below(5_000), noise);
            separator(&mut message, &boundary, "");
            attachment(&mut message, 40_000 + noise.below(400_000), noise);
            separator(&mut message, &boundary, "--");
        }
    }
    message.push(b'\n');
    message
}

fn multipart(message: &mut Vec<u8>, kind: &str, boundary: &str) {
    let header = format!("Content-Type: multipart/{kind}; boundary=\"{boundary}\"\n\n");
    message.extend_from_slice(header.as_bytes());
    separator(message, boundary, "");
}

fn separator(message: &mut Vec<u8>, boundary: &str, end: &str) {
    message.extend_from_slice(format!("--{boundary}{end}\n").as_bytes());
}

fn plain_part(message: &mut Vec<u8>, bytes: usize, noise: &mut Noise) {
    message.extend_from_slice(b"Content-Type: text/plain; charset=utf-8\n\n");
    let end = message.len() + bytes;
    while message.len() < end {
        let sentence = SENTENCES[noise.below(SENTENCES.len())];
        message.extend_from_slice(sentence.as_bytes());
        message.push(if noise.below(4) == 0 { b'\n' } else { b' ' });
    }
    message.push(b'\n');
}

fn html_part(message: &mut Vec<u8>, bytes: usize, noise: &mut Noise) {
    message.extend_from_slice(b"Content-Type: text/html; charset=utf-8\n\n<html><body>\n");
    let end = message.len() + bytes;
    while message.len() < end {
        let sentence = SENTENCES[noise.below(SENTENCES.len())];
        let paragraph = format!("<p style=\"margin:0 0 1em 0\"><span>{sentence}</span></p>\n");
        message.extend_from_slice(paragraph.as_bytes());
    }
    message.extend_from_slice(b"</body></html>\n");
}

fn attachment(message: &mut Vec<u8>, bytes: usize, noise: &mut Noise) {
    message.extend_from_slice(
        b"Content-Type: application/pdf; name=\"proof.pdf\"\n\
          Content-Disposition: attachment; filename=\"proof.pdf\"\n\
          Content-Transfer-Encoding: base64\n\n",
    );
    let mut line = [0; LINE_BYTES];
    for _ in 0..bytes / LINE_BYTES {
        line.fill_with(|| noise.byte());
        message.extend_from_slice(BASE64.encode(&line).as_bytes());
        message.push(b'\n');
    }
}

/// Numbers that do not compress, the same each time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next()).expect("31 bits") % bound
    }
}
