//! What the owner of the context may see.

use cl_model::scalar::Predicate;
use cl_model::urn::ClaimId;

use super::Vault;
use crate::core::claim::Support;
use crate::core::meeting;
use crate::error::Error;
use crate::store::{Known, StoreError, StoredClaim, StoredEvent, SubjectName, blocking};

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

/// Where a claim comes from.
pub(crate) struct ExplainedClaim {
    pub(crate) document: Vec<u8>,
    pub(crate) evidence: Vec<Evidence>,
}

/// One source of a claim, with the author's words.
pub(crate) struct Evidence {
    pub(crate) support: Support,
    pub(crate) words: String,
    pub(crate) reason: Option<&'static str>,
    /// What the rule noticed, and what that means.
    pub(crate) marks: Vec<(String, Option<&'static str>)>,
}

impl Vault {
    /// Where a claim comes from, source by source.
    pub(crate) async fn explain(
        &self,
        name: SubjectName,
        id: ClaimId,
    ) -> Result<ExplainedClaim, Error> {
        let own = self.own.to_string();
        let found = blocking(&self.store, move |store| {
            let subject = match store.find(&name)? {
                Known::Subject(subject) => subject,
                Known::Erased => return Err(StoreError::Erased),
                Known::Nothing => return Ok(None),
            };
            let mut draft = store.draft(&subject)?;
            let Some(key) = draft.find_claim(&id)? else {
                return Ok(None);
            };
            let claim = draft.claim(&key)?.ok_or(StoreError::Corrupt)?;
            let contradicts = draft.contradicting(&claim)?;
            let gone = draft.gone(&claim)?;
            let subject = name.subject.as_str();
            let document = claim.document(&own, subject, &contradicts, gone.as_ref());
            let mut sources = Vec::with_capacity(claim.supports().len());
            for support in claim.supports() {
                let event = draft.event(&support.event)?;
                let content = event.and_then(|event| event.content);
                let words = content.map(|content| content.words_of(&key).to_owned());
                sources.push((support.clone(), words.unwrap_or_default()));
            }
            Ok(Some((document.map_err(|_| StoreError::Corrupt)?, sources)))
        });
        let (document, sources) = found.await?.ok_or(Error::ClaimNotFound)?;
        let evidence = sources.into_iter().map(|(support, words)| {
            let marks = support.marks.iter().map(|mark| {
                let mark = mark.as_str();
                let meaning = meeting::meaning(mark).or_else(|| self.extractor.meaning(mark));
                (mark.to_owned(), meaning)
            });
            let rule = support.rule.as_str();
            Evidence {
                reason: meeting::reason(rule).or_else(|| self.extractor.reason(rule)),
                marks: marks.collect(),
                words,
                support,
            }
        });
        Ok(ExplainedClaim {
            document,
            evidence: evidence.collect(),
        })
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
) -> Result<(u64, ListedClaim), StoreError> {
    let claim = &stored.claim;
    let document = claim.document(own, subject_ref, &stored.contradicts, stored.gone.as_ref());
    let listed = ListedClaim {
        document: document.map_err(|_| StoreError::Corrupt)?,
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
