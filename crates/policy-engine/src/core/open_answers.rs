//! How many answers one person may hold open, and have refused.

use std::collections::VecDeque;

use cl_model::time::UnixTime;

use super::challenge::CeremonyId;

/// The most answers that one person holds open: as many as tabs in which somebody would work. The
/// newest takes the place of the oldest.
pub const MAX_OPEN: usize = 8;

/// The most answers of one person that are refused, each with a receipt, before no more are opened
/// for a while.
pub const MAX_REFUSED: u32 = 16;

/// How long refused answers count together.
pub const REFUSED_SECONDS: u64 = 3600;

/// The answers that one person has open, and those that were refused of late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenAnswers {
    /// Oldest first.
    pub open: VecDeque<CeremonyId>,
    /// How many were refused.
    pub refused: u32,
    /// Until when those count.
    pub refused_until: Option<UnixTime>,
}

impl OpenAnswers {
    /// Whether another one may be opened; else when.
    pub fn check(&self, now: UnixTime) -> Result<(), UnixTime> {
        match self.refused_until {
            Some(until) if until > now && self.refused >= MAX_REFUSED => Err(until),
            Some(_) | None => Ok(()),
        }
    }

    /// Adds one, and says which one it takes the place of.
    pub fn open(&mut self, id: CeremonyId) -> Option<CeremonyId> {
        let replaced = (self.open.len() >= MAX_OPEN).then(|| self.open.pop_front());
        self.open.push_back(id);
        replaced.flatten()
    }

    /// Counts one that was refused.
    pub fn refuse(&mut self, now: UnixTime) {
        if self.refused_until.is_none_or(|until| until <= now) {
            self.refused = 0;
            self.refused_until = Some(now.plus_seconds(REFUSED_SECONDS));
        }
        self.refused = self.refused.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> UnixTime {
        UnixTime::from_milliseconds(1000 * second)
    }

    #[test]
    fn the_newest_takes_the_place_of_the_oldest() {
        let mut answers = OpenAnswers::default();
        for number in 0..8 {
            assert_eq!(answers.open([number; 16]), None);
        }
        assert_eq!(answers.open([8; 16]), Some([0; 16]));
        assert_eq!(answers.open([9; 16]), Some([1; 16]));
        assert_eq!(answers.open.len(), MAX_OPEN);
    }

    #[test]
    fn refused_answers_count_for_an_hour() {
        let mut answers = OpenAnswers::default();
        for number in 0..MAX_REFUSED {
            assert_eq!(answers.check(at(i64::from(number))), Ok(()));
            answers.refuse(at(i64::from(number)));
        }
        assert_eq!(answers.check(at(20)), Err(at(3600)));
        assert_eq!(answers.check(at(3599)), Err(at(3600)));
        assert_eq!(answers.check(at(3600)), Ok(()));
        answers.refuse(at(3600));
        assert_eq!(
            (answers.refused, answers.refused_until),
            (1, Some(at(7200)))
        );
    }
}
