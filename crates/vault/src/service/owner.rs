//! What the owner of the context may see.

use cl_model::scalar::Predicate;

use super::Vault;
use crate::error::Error;
use crate::store::{Known, StoredClaim, StoredEvent, SubjectName, blocking};

/// The most bytes of documents on one page, so that it fits a message.
const MAX_PAGE_BYTES: usize = 2 * 1024 * 1024;

/// Which page of a list.
pub(crate) struct PageCall {
    pub(crate) name: SubjectName,
    pub(crate) after: Option<u64>,
    pub(crate) limit: usize,
}

/// One page of a list.
pub(crate) struct Page<T> {
    pub(crate) entries: Vec<T>,
    pub(crate) next: Option<u64>,
    pub(crate) total: u64,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            next: None,
            total: 0,
        }
    }
}

impl Vault {
    /// A page of a subject's events, latest capture first.
    pub(crate) async fn events(&self, call: PageCall) -> Result<Page<StoredEvent>, Error> {
        blocking(&self.store, move |store| {
            let Known::Subject(subject) = store.find(&call.name)? else {
                return Ok(Page::default());
            };
            let page = store.draft(&subject)?.events(call.after, call.limit + 1)?;
            let entries = page.entries.into_iter();
            let sized = entries.map(|(place, event)| {
                let content = event.content.as_ref();
                let bytes = content.map_or(0, |content| {
                    let ways: usize = content.ways.iter().map(Vec::len).sum();
                    content.document.len() + ways
                });
                (place, bytes, event)
            });
            Ok(cut(sized, call.limit, page.total))
        })
        .await
    }

    /// A page of the claims about a subject, newest first, as documents with their marks.
    pub(crate) async fn claims(
        &self,
        call: PageCall,
        predicate: Option<Predicate>,
    ) -> Result<Page<ListedClaim>, Error> {
        let own = self.own.to_string();
        blocking(&self.store, move |store| {
            let Known::Subject(subject) = store.find(&call.name)? else {
                return Ok(Page::default());
            };
            let mut draft = store.draft(&subject)?;
            let (claims, total) = draft.claims(predicate.as_ref(), call.after, call.limit + 1)?;
            let mut listed = Vec::with_capacity(claims.len());
            for claim in &claims {
                listed.push(listed_claim(claim, &own, call.name.subject.as_str())?);
            }
            let sized = listed
                .into_iter()
                .map(|(place, claim)| (place, claim.document.len(), claim));
            Ok(cut(sized, call.limit, total))
        })
        .await
    }
}

/// A claim as its owner sees it.
pub(crate) struct ListedClaim {
    pub(crate) document: Vec<u8>,
    pub(crate) marks: Vec<String>,
    pub(crate) derived_at: cl_model::time::UnixTime,
}

fn listed_claim(
    stored: &StoredClaim,
    own: &str,
    subject_ref: &str,
) -> Result<(u64, ListedClaim), crate::store::StoreError> {
    let claim = &stored.claim;
    let document = claim.document(own, subject_ref, &stored.contradicts, stored.gone.as_ref());
    let listed = ListedClaim {
        document: document.map_err(|_| crate::store::StoreError::Corrupt)?,
        marks: claim
            .marks()
            .into_iter()
            .map(|mark| mark.as_str().to_owned())
            .collect(),
        derived_at: claim.derived_at,
    };
    Ok((claim.place, listed))
}

/// Ends a page at its limit, or where it would no longer fit a message.
fn cut<T>(entries: impl Iterator<Item = (u64, usize, T)>, limit: usize, total: u64) -> Page<T> {
    let mut page = Page {
        total,
        ..Page::default()
    };
    let (mut size, mut last) = (0, None);
    for (place, bytes, entry) in entries {
        size += bytes;
        let is_full = page.entries.len() == limit;
        if is_full || (size > MAX_PAGE_BYTES && !page.entries.is_empty()) {
            page.next = last;
            break;
        }
        last = Some(place);
        page.entries.push(entry);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_at_its_limit_or_its_size_and_says_where() {
        let entries = |sizes: &[usize]| {
            let numbered = sizes.iter().enumerate();
            let entries: Vec<_> = numbered
                .map(|(at, size)| (u64::try_from(at).unwrap(), *size, at))
                .collect();
            entries.into_iter()
        };
        let page = cut(entries(&[1, 1, 1]), 2, 3);
        assert_eq!((page.entries, page.next), (vec![0, 1], Some(1)));
        let page = cut(entries(&[1, 1]), 2, 2);
        assert_eq!((page.entries, page.next), (vec![0, 1], None));
        let page = cut(entries(&[MAX_PAGE_BYTES + 1, 1]), 9, 2);
        assert_eq!((page.entries, page.next), (vec![0], Some(0)));
    }
}
