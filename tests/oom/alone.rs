//! Filling a map with exclusive access, without memory.

use koel::HashMap;

use crate::allocator::Plan;
use crate::common::{Config, catch, seeded};
use crate::operations::{Words, assert_whole, failed};

/// An empty map is rebuilt, and if there is no memory for that it grows as it is filled.
pub(crate) fn extend_alone<M: Words>(plan: &mut Plan) {
    let mut map = M::build(Config::GROWING, seeded(1));
    let _ = M::build(Config::GROWING, seeded(1)).get(&0);
    let mut first = 0;
    for last in [100, 120, 300] {
        let taken: Vec<_> = (first..last).map(|key| (key, !key)).collect();
        if let Err(message) = catch(|| plan.run(|| map.extend_alone(taken))) {
            assert!(message.contains("no memory") && plan.is_over(), "{message}");
            failed();
            assert!((first..last).contains(&(map.len() as u64)), "{} of {first} to {last}", map.len());
            assert_whole(&map, map.len() as u64);
            map.extend_alone((first..last).map(|key| (key, !key)));
        }
        first = last;
    }
    assert_whole(&map, 300);
}

/// Other entries are displaced for one for which there is no memory, after their segment has copied them ahead of its split.
pub(crate) fn boxes_alone(plan: &mut Plan) {
    for seed in 0..16 {
        let mut map = HashMap::<u64, [u64; 100]>::builder().segment_slots(64).hasher(seeded(seed)).build();
        assert_eq!(map.pin().get(&0), None, "and this thread has pinned it");
        let mut present = Vec::new();
        for key in 0..80 {
            if key == 56 {
                // It has begun to copy, and continues only when it is as full again.
                present.drain(..6).for_each(|key| assert!(map.pin().remove(&key).is_some()));
            }
            match catch(|| plan.run(|| Extend::extend(&mut map, [(key, [key; 100])]))) {
                Ok(()) => present.push(key),
                Err(message) => {
                    assert!(message.contains("no memory") && plan.is_over(), "{message}");
                    failed();
                }
            }
            assert_eq!(map.len(), present.len());
        }
        assert!(map.capacity() > 64, "it has split");
        assert!(present.iter().all(|key| map.pin().get(key) == Some(&[*key; 100])), "a key is lost");
        assert_eq!(map.pin().iter().count(), present.len());
    }
}
