//! Interleaved rounds: A B C, B C A, C A B.

/// Lets `measure` have every entrant once per round, each round starting with another one; so that what changes on
/// the machine in the meantime hits all of them alike. Returns each entrant's results, one per round.
///
/// # Errors
///
/// The first error of `measure`.
pub fn interleaved<E, T, X>(
    entrants: &mut [E],
    rounds: usize,
    mut measure: impl FnMut(&mut E) -> Result<T, X>,
) -> Result<Vec<Vec<T>>, X> {
    let mut results: Vec<Vec<T>> = entrants.iter().map(|_| Vec::with_capacity(rounds)).collect();
    let count = entrants.len();
    for round in 0..rounds {
        for turn in 0..count {
            let number = (round + turn) % count;
            results[number].push(measure(&mut entrants[number])?);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn_per_round_and_the_start_rotates() {
        let mut order = Vec::new();
        let results = interleaved(&mut ['a', 'b', 'c'], 2, |&mut name| {
            order.push(name);
            Ok::<_, ()>(order.len())
        });
        assert_eq!(order, ['a', 'b', 'c', 'b', 'c', 'a']);
        assert_eq!(results, Ok(vec![vec![1, 6], vec![2, 4], vec![3, 5]]));
    }

    #[test]
    fn an_error_ends_the_rounds() {
        let mut turns = 0;
        let result: Result<Vec<Vec<()>>, _> = interleaved(&mut [1, 2, 3], 2, |&mut n| {
            turns += 1;
            if n == 2 { Err("two") } else { Ok(()) }
        });
        assert_eq!((result, turns), (Err("two"), 2));
    }
}
