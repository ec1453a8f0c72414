//! Interleaved rounds: A B C, B A C, C A B.

/// Passes every entrant to `measure` once per round. Each round starts with another entrant, and every second round is in
/// reverse order: so changes of the machine over time affect all of them alike, and the state that one leaves behind, in the
/// caches and the allocator, does not always affect the same one. `measure` gets the round's number, too. An entrant that has
/// no result in a round is out, and has no more turns.
///
/// Returns each entrant's results, one per round; `None` for those that are out.
///
/// # Errors
///
/// The first error of `measure`.
pub fn interleaved<E, T, X>(
    entrants: &mut [E],
    rounds: usize,
    mut measure: impl FnMut(usize, &mut E) -> Result<Option<T>, X>,
) -> Result<Vec<Option<Vec<T>>>, X> {
    let mut results: Vec<Option<Vec<T>>> =
        entrants.iter().map(|_| Some(Vec::with_capacity(rounds))).collect();
    let count = entrants.len();
    for round in 0..rounds {
        for turn in 0..count {
            let steps = if round % 2 == 0 { turn } else { count - turn };
            let number = (round + steps) % count;
            if let Some(mut earlier) = results[number].take() {
                let result = measure(round, &mut entrants[number])?;
                results[number] = result.map(|result| {
                    earlier.push(result);
                    earlier
                });
            }
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
        let results = interleaved(&mut ['a', 'b', 'c'], 3, |round, &mut name| {
            order.push((round, name));
            Ok::<_, ()>(Some(order.len()))
        });
        let turns = |round, names: [char; 3]| names.map(|name| (round, name));
        assert_eq!(
            order,
            [turns(0, ['a', 'b', 'c']), turns(1, ['b', 'a', 'c']), turns(2, ['c', 'a', 'b'])].concat()
        );
        assert_eq!(results, Ok(vec![Some(vec![1, 5, 8]), Some(vec![2, 4, 9]), Some(vec![3, 6, 7])]));
    }

    #[test]
    fn who_has_no_result_is_out_and_the_others_go_on() {
        let mut turns = Vec::new();
        let results = interleaved(&mut [1, 2], 3, |round, &mut n| {
            turns.push(n);
            Ok::<_, ()>((n == 1 || round < 1).then_some(round))
        });
        assert_eq!(results, Ok(vec![Some(vec![0, 1, 2]), None]));
        assert_eq!(turns.iter().filter(|&&n| n == 2).count(), 2);
    }

    #[test]
    fn an_error_ends_the_rounds() {
        let mut turns = 0;
        let result: Result<Vec<Option<Vec<()>>>, _> = interleaved(&mut [1, 2, 3], 2, |_, &mut n| {
            turns += 1;
            if n == 2 { Err("two") } else { Ok(Some(())) }
        });
        assert_eq!((result, turns), (Err("two"), 2));
    }
}
