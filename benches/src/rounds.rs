//! Interleaved rounds: A B C, B A C, C A B.

/// Lets `measure` have every entrant once per round, each round starting with another one, and every second round the other way
/// round; so that what changes on the machine in the meantime hits all of them alike, and what one leaves behind, in the
/// caches and the allocator, does not always meet the same one. Returns each entrant's results, one per round.
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
            let steps = if round % 2 == 0 { turn } else { count - turn };
            let number = (round + steps) % count;
            results[number].push(measure(&mut entrants[number])?);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn_per_round_and_start_and_direction_change() {
        let mut order = Vec::new();
        let results = interleaved(&mut ['a', 'b', 'c'], 3, |&mut name| {
            order.push(name);
            Ok::<_, ()>(order.len())
        });
        assert_eq!(order, ['a', 'b', 'c', 'b', 'a', 'c', 'c', 'a', 'b']);
        assert_eq!(results, Ok(vec![vec![1, 5, 8], vec![2, 4, 9], vec![3, 6, 7]]));
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
