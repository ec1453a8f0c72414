//! Contestants side by side. A contestant that panics, cannot do what is asked of it, or is wrong is out, and tables say so;
//! the others go on. If koel is wrong, the run ends.

use crate::console::Console;
use crate::error::{CheckError, Error};
use crate::faults::caught;
use crate::report::Absent;
use crate::rounds::interleaved;
use crate::stop;
use crate::{caches, contestants, filters};

/// The name of a contestant.
pub(super) trait Named: Copy + PartialEq {
    /// Its name in the tables.
    fn name(self) -> &'static str;

    /// Whether it is koel.
    fn is_koel(self) -> bool;
}

macro_rules! named {
    ($($id:ty),*) => {$(
        impl Named for $id {
            fn name(self) -> &'static str {
                <$id>::name(self)
            }

            fn is_koel(self) -> bool {
                <$id>::is_koel(self)
            }
        }
    )*};
}

named!(contestants::Id, filters::Id, caches::Id);

/// Contestants in the order of tables.
pub(super) struct Field<'c, I, E: ?Sized> {
    console: &'c Console,
    entries: Vec<Entry<I, E>>,
}

struct Entry<I, E: ?Sized> {
    id: I,
    /// The contestant, or why it is out.
    entrant: Result<Box<E>, Absent>,
}

impl<'c, I: Named, E: ?Sized> Field<'c, I, E> {
    pub(super) fn new(console: &'c Console, entrants: impl Iterator<Item = (I, Box<E>)>) -> Self {
        let entries = entrants.map(|(id, entrant)| Entry { id, entrant: Ok(entrant) });
        Field { console, entries: entries.collect() }
    }

    /// The contestant, if it is not out.
    pub(super) fn entrant(&mut self, id: I) -> Option<&mut E> {
        let entry = self.entries.iter_mut().find(|entry| entry.id == id)?;
        entry.entrant.as_mut().ok().map(|entrant| &mut **entrant)
    }

    /// All contestants that are not out.
    pub(super) fn entrants(&mut self) -> impl Iterator<Item = &mut E> {
        self.entries.iter_mut().filter_map(|entry| entry.entrant.as_mut().ok()).map(|entrant| &mut **entrant)
    }

    /// The contestants that are out, and why.
    pub(super) fn absent(&self) -> Vec<Absent> {
        self.entries.iter().filter_map(|entry| entry.entrant.as_ref().err().cloned()).collect()
    }

    /// Measures all contestants once. Returns the results of those that are not out.
    ///
    /// # Errors
    ///
    /// As [`Field::race`].
    pub(super) fn each<T>(
        &mut self,
        title: &str,
        mut measure: impl FnMut(I, &mut E) -> Result<T, CheckError>,
    ) -> Result<Vec<(I, T)>, Error> {
        let measured = self.race(title, 1, |_| true, |_, id, entrant| measure(id, entrant))?;
        Ok(measured.into_iter().flat_map(|(id, once)| once.into_iter().map(move |one| (id, one))).collect())
    }

    /// Measures the contestants that `takes` accepts in interleaved rounds, each of which has a number. Returns the results of
    /// those that are not out in the end, one for each round.
    ///
    /// # Errors
    ///
    /// A wrong answer or a panic of koel; Ctrl-C; or that nobody reads the output.
    pub(super) fn race<T>(
        &mut self,
        title: &str,
        rounds: usize,
        takes: impl Fn(&E) -> bool,
        mut measure: impl FnMut(usize, I, &mut E) -> Result<T, CheckError>,
    ) -> Result<Vec<(I, Vec<T>)>, Error> {
        let is_taken = |entry: &Entry<I, E>| entry.entrant.as_ref().is_ok_and(|entrant| takes(entrant));
        let (mut taken, idle): (Vec<_>, Vec<_>) = self.entries.iter_mut().partition(|entry| is_taken(entry));
        (0..idle.len() * rounds).for_each(|_| self.console.done());
        let samples = interleaved(&mut taken, rounds, |round, entry| {
            stop::check()?;
            self.console.check()?;
            self.console.begin(title, entry.id.name());
            let id = entry.id;
            let result = entry.attempt(title, self.console, |entrant| measure(round, id, entrant));
            // A contestant that is out has no more turns.
            let turns = if matches!(result, Ok(None)) { rounds - round } else { 1 };
            (0..turns).for_each(|_| self.console.done());
            result
        })?;
        let measured = taken.iter().zip(samples);
        Ok(measured.filter_map(|(entry, samples)| Some((entry.id, samples?))).collect())
    }
}

impl<I: Named, E: ?Sized> Entry<I, E> {
    /// `None` if it is out now.
    fn attempt<T>(
        &mut self,
        title: &str,
        console: &Console,
        run: impl FnOnce(&mut E) -> Result<T, CheckError>,
    ) -> Result<Option<T>, Error> {
        let Ok(entrant) = &mut self.entrant else { return Ok(None) };
        let failure = match caught(|| run(entrant)) {
            Ok(Ok(result)) => return Ok(Some(result)),
            Ok(Err(failure)) => failure,
            Err(panic) if self.id.is_koel() => CheckError::new(self.id.name(), panic),
            Err(panic) => CheckError::refusal(self.id.name(), panic),
        };
        let failure = failure.during(title);
        if !failure.is_refusal {
            if self.id.is_koel() {
                return Err(failure.into());
            }
            console.failed(failure.clone());
        }
        let broken = std::mem::replace(&mut self.entrant, Err(Absent::of(failure)));
        // A contestant that has panicked may do so again when it is dropped.
        let _ = caught(|| drop(broken));
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::contestants::Id;

    /// What a contestant does in which round.
    type Script = fn(usize) -> Result<usize, CheckError>;

    type Measured = Result<Vec<(Id, Vec<usize>)>, Error>;

    fn race(console: &Console, scripts: [(Id, Script); 3]) -> (Measured, Vec<Absent>) {
        let scripts = scripts.into_iter().map(|(id, script)| (id, Box::new(script)));
        let mut field = Field::new(console, scripts);
        let measured = field.race("a test", 3, |_| true, |round, _, script| script(round));
        let again = field.race("another", 2, |_| true, |round, _, _| Ok(round));
        if let (Ok(measured), Ok(again)) = (&measured, &again) {
            assert!(again.iter().map(|(id, _)| id).eq(measured.iter().map(|(id, _)| id)), "out is out");
        }
        (measured, field.absent())
    }

    #[test]
    fn who_panics_refuses_or_is_wrong_is_out_and_the_others_go_on() {
        let console = Console::new(false);
        let wrong: Script =
            |round| if round == 1 { Err(CheckError::new("scc", "a wrong answer")) } else { Ok(round) };
        let refuses: Script = |_| Err(CheckError::refusal("koel", "too few bits"));
        let panics: Script = |round| if round == 2 { panic!("by a rival") } else { Ok(round) };
        let sound: Script = Ok;
        let (measured, absent) =
            race(&console, [(Id::Koel, refuses), (Id::Papaya, panics), (Id::Dashmap, sound)]);
        assert_eq!(measured.unwrap(), [(Id::Dashmap, vec![0, 1, 2])]);
        let told: Vec<String> = absent.iter().map(Absent::in_words).collect();
        assert_eq!(told[0], "koel is out since a test: too few bits");
        assert!(told[1].starts_with("papaya is out since a test: it panicked: by a rival ("), "{told:?}");
        assert!(console.failures().is_empty(), "nobody was wrong");
        let (measured, absent) =
            race(&console, [(Id::Koel, sound), (Id::SccHashMap, wrong), (Id::Dashmap, sound)]);
        assert_eq!((measured.unwrap().len(), absent.len()), (2, 1));
        let failures: Vec<String> = console.failures().iter().map(CheckError::to_string).collect();
        assert_eq!(failures, ["check failed: scc in a test: a wrong answer"]);
    }

    #[test]
    fn nothing_is_measured_when_nobody_reads_it_and_no_report_is_written() {
        let sound: Script = Ok;
        let scripts = || [(Id::Koel, sound), (Id::Papaya, sound), (Id::Dashmap, sound)];
        for (reports, error, goes_on) in [
            (false, io::ErrorKind::BrokenPipe, false),
            (true, io::ErrorKind::BrokenPipe, true),
            (false, io::ErrorKind::StorageFull, true),
        ] {
            let console = Console::new(reports);
            console.note(Err(error.into()));
            let measured = race(&console, scripts()).0;
            assert_eq!(measured.is_ok(), goes_on, "{error}");
            assert!(goes_on || matches!(measured, Err(Error::Unheard)));
        }
    }

    #[test]
    fn a_wrong_answer_or_a_panic_of_koel_ends_the_run() {
        let sound: Script = Ok;
        let panics: Script = |_| panic!("by koel");
        let wrong: Script = |_| Err(CheckError::new("koel", "by koel"));
        for fault in [panics, wrong] {
            let scripts = [(Id::Papaya, sound), (Id::Koel, fault), (Id::Dashmap, sound)];
            let failure = race(&Console::new(false), scripts).0.unwrap_err().to_string();
            assert!(failure.starts_with("check failed: koel in a test: "), "{failure}");
            assert!(failure.contains("by koel"), "{failure}");
        }
    }
}
