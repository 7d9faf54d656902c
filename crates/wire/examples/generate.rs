//! Writes the generated half of this crate: messages, services, descriptor set.
//!
//! Run it through `scripts/generate`. Usage: `generate PROTO_DIR OUT_DIR`; `OUT_DIR` exists.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let proto_dir = arguments.next().context("PROTO_DIR is missing")?;
    let out_dir = arguments.next().context("OUT_DIR is missing")?;
    ensure!(arguments.next().is_none(), "too many arguments");

    let files = compile(&proto_dir)?;
    generate(&files, &out_dir)?;
    fs::write(
        out_dir.join("descriptor.bin"),
        without_comments(files).encode_to_vec(),
    )?;
    Ok(())
}

fn compile(proto_dir: &Path) -> anyhow::Result<FileDescriptorSet> {
    let mut sources = Vec::new();
    find_sources(proto_dir, &mut sources)?;
    sources.sort();
    let mut compiler = protox::Compiler::new([proto_dir])?;
    compiler
        .include_imports(true)
        .include_source_info(true)
        .open_files(&sources)?;
    Ok(compiler.file_descriptor_set())
}

fn find_sources(dir: &Path, sources: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            find_sources(&path, sources)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "proto")
        {
            sources.push(path);
        }
    }
    Ok(())
}

fn generate(files: &FileDescriptorSet, out_dir: &Path) -> anyhow::Result<()> {
    let mut hidden = Vec::new();
    let mut impls = Vec::new();
    for file in files.file.iter().filter(|file| is_ours(file.package())) {
        let mut code = String::new();
        let hides = Hides::of(file);
        let messages = file.message_type.iter();
        for message in messages.filter(|message| hides.any_of(message)) {
            let name = format!(".{}.{}", file.package(), message.name());
            hidden.push(name);
            code.push_str(&debug_impl(message, hides)?);
        }
        impls.push((file.package(), code));
    }

    tonic_prost_build::configure()
        .out_dir(out_dir)
        .emit_rerun_if_changed(false)
        .skip_debug(hidden)
        .compile_fds(files.clone())?;

    for (package, code) in impls {
        let path = out_dir.join(format!("{package}.rs"));
        let generated = fs::read_to_string(&path)?;
        fs::write(path, generated + &code)?;
    }
    Ok(())
}

/// What a message's `Debug` must not show.
#[derive(Clone, Copy)]
struct Hides {
    text: bool,
}

impl Hides {
    /// Documents and signatures everywhere; where claims and sources travel, and where people read
    /// what is asked about them, all text as well.
    fn of(file: &FileDescriptorProto) -> Self {
        let package = ["contextlayer.semantic.v1", "contextlayer.vault.v1"];
        let files = [
            "contextlayer/policy/v1/approval.proto",
            "contextlayer/policy/v1/approver_admin.proto",
        ];
        Self {
            text: package.contains(&file.package()) || files.contains(&file.name()),
        }
    }

    fn field(self, field: &FieldDescriptorProto) -> bool {
        field.r#type() == Type::Bytes || (self.text && field.r#type() == Type::String)
    }

    fn any_of(self, message: &DescriptorProto) -> bool {
        message.field.iter().any(|field| self.field(field))
    }
}

/// A `Debug` that gives the length of what is hidden, never its bytes, so that no log line shows
/// what a document says.
fn debug_impl(message: &DescriptorProto, hides: Hides) -> anyhow::Result<String> {
    let name = message.name();
    let mut code = debug_header(name)?;
    write!(code, "f.debug_struct({name:?})")?;
    let mut seen = Vec::new();
    for field in &message.field {
        let field_name = field.name();
        match oneof_of(message, field) {
            Some(oneof) if seen.contains(&oneof) => {}
            Some(oneof) => {
                write!(code, ".field({oneof:?}, &self.{oneof})")?;
                seen.push(oneof);
            }
            None if hides.field(field) => {
                let shown = if field.proto3_optional() {
                    format!("self.{field_name}.as_ref().map(|value| value.len())")
                } else {
                    let unit = match field.label() {
                        Label::Repeated => "values",
                        Label::Optional | Label::Required => "bytes",
                    };
                    format!("format_args!(\"{{}} {unit}\", self.{field_name}.len())")
                };
                write!(code, ".field({field_name:?}, &{shown})")?;
            }
            None if field.r#type() == Type::Enum => {
                write!(code, ".field({field_name:?}, &self.{field_name}())")?;
            }
            None => write!(code, ".field({field_name:?}, &self.{field_name})")?,
        }
    }
    code.push_str(".finish() } }\n");

    for oneof in oneofs(message) {
        code.push_str(&debug_impl_of_oneof(message, oneof, hides)?);
    }
    Ok(code)
}

fn debug_impl_of_oneof(
    message: &DescriptorProto,
    oneof: &str,
    hides: Hides,
) -> anyhow::Result<String> {
    let module = snake_case(message.name());
    let mut code = debug_header(&format!("{module}::{}", camel_case(oneof)))?;
    code.push_str("match self {");
    let fields = message.field.iter();
    for field in fields.filter(|field| oneof_of(message, field) == Some(oneof)) {
        let variant = camel_case(field.name());
        let shown = if hides.field(field) {
            "&format_args!(\"{} bytes\", value.len())"
        } else {
            "value"
        };
        write!(
            code,
            "Self::{variant}(value) => f.debug_tuple({variant:?}).field({shown}).finish(),"
        )?;
    }
    code.push_str("} } }\n");
    Ok(code)
}

fn debug_header(type_name: &str) -> anyhow::Result<String> {
    let mut code = String::new();
    write!(
        code,
        "/// Shows the length of what must stay hidden, never its bytes.\n\
         impl ::core::fmt::Debug for {type_name} {{ \
         fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{ "
    )?;
    Ok(code)
}

fn is_ours(package: &str) -> bool {
    package.starts_with("contextlayer.")
}

/// The written oneofs of a message. One that hides loses the derived `Debug` of these as well.
fn oneofs(message: &DescriptorProto) -> impl Iterator<Item = &str> {
    let names = message.oneof_decl.iter().map(|oneof| oneof.name());
    names.filter(|&oneof| {
        let mut fields = message.field.iter();
        fields.any(|field| oneof_of(message, field) == Some(oneof))
    })
}

/// The written `oneof` that the field is part of; the compiler's own for `optional` are none.
fn oneof_of<'a>(message: &'a DescriptorProto, field: &FieldDescriptorProto) -> Option<&'a str> {
    let index = field.oneof_index.filter(|_| !field.proto3_optional())?;
    let oneof = message.oneof_decl.get(usize::try_from(index).ok()?)?;
    Some(oneof.name())
}

fn camel_case(snake: &str) -> String {
    let words = snake.split('_');
    words
        .filter_map(|word| {
            let first = word.get(..1)?;
            Some(first.to_ascii_uppercase() + word.get(1..)?)
        })
        .collect()
}

fn snake_case(camel: &str) -> String {
    let mut snake = String::new();
    for character in camel.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// Reflection needs no comments, and they are most of the size.
fn without_comments(mut files: FileDescriptorSet) -> FileDescriptorSet {
    for file in &mut files.file {
        file.source_code_info = None;
    }
    files
}
