//! The contract of pins, on every implementation, and what a folder adds.

use std::fs;

use cl_receipt_store::pin::{FolderPin, NotAdvanced, Pin};

use crate::failpoints::MemoryPin;

const ORIGIN: &str = "example.org/receipts/acme";

/// Two handles to the same pins replace only what each has seen.
fn check_contract(one: &dyn Pin, two: &dyn Pin) {
    let new = |size| format!("{ORIGIN}\n{size}\n");
    assert_eq!(one.read(ORIGIN).unwrap(), None);
    assert!(one.origins().unwrap().is_empty());
    one.advance(ORIGIN, None, &new(1)).unwrap();
    assert_eq!(two.read(ORIGIN).unwrap(), Some(new(1)));
    let refused = two.advance(ORIGIN, None, &new(2));
    assert!(matches!(refused, Err(NotAdvanced::Moved)));
    two.advance(ORIGIN, Some(&new(1)), &new(2)).unwrap();
    assert_eq!(one.read(ORIGIN).unwrap(), Some(new(2)));
    assert_eq!(one.origins().unwrap(), [ORIGIN]);
    one.probe().unwrap();
    assert_eq!(two.read(ORIGIN).unwrap(), Some(new(2)));
}

#[test]
fn an_advance_replaces_only_what_the_caller_has_seen() {
    let pins = MemoryPin::default();
    check_contract(&pins, &pins.clone());
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [(); 2].map(|()| FolderPin::open(folder.path().join("pins")).unwrap());
    check_contract(&one, &two);
}

#[test]
fn a_missing_folder_is_no_missing_pin() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pins");
    let pin = FolderPin::open(path.clone()).unwrap();
    fs::remove_dir_all(&path).unwrap();
    assert!(pin.read(ORIGIN).is_err());
    assert!(pin.origins().is_err());
    assert!(pin.probe().is_err());
    let refused = pin.advance(ORIGIN, None, "x");
    assert!(matches!(refused, Err(NotAdvanced::Failed(_))));
}

#[test]
fn a_pin_under_another_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pin = FolderPin::open(folder.path().to_owned()).unwrap();
    pin.advance(ORIGIN, None, "other\n1\n").unwrap();
    assert!(pin.origins().is_err());
}
