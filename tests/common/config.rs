//! The shapes of map that tests run with.

/// How much room a map has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Starts with one bucket and grows.
    Growing,
    /// Starts with room for this many entries and grows.
    From(usize),
    /// Never grows.
    Fixed(usize),
}

/// The options of a map's builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) room: Room,
    pub(crate) segment_slots: Option<usize>,
    pub(crate) huge_pages: bool,
    /// Whether there are home cells, for as many entries as there is room for at first; none if there is no room. `None`: as
    /// the map decides.
    pub(crate) home_cells: Option<bool>,
}

impl Config {
    pub(crate) const GROWING: Config = Config::new(Room::Growing);

    const fn new(room: Room) -> Self {
        Config { room, segment_slots: None, huge_pages: false, home_cells: None }
    }

    pub(crate) fn room_for(entries: usize) -> Self {
        Config::new(Room::From(entries))
    }

    pub(crate) fn fixed(entries: usize) -> Self {
        Config::new(Room::Fixed(entries))
    }

    pub(crate) fn segments_of(self, slots: usize) -> Self {
        Config { segment_slots: Some(slots), ..self }
    }

    pub(crate) fn huge_pages(self) -> Self {
        Config { huge_pages: true, ..self }
    }

    pub(crate) fn home_cells(self) -> Self {
        Config { home_cells: Some(true), ..self }
    }

    /// How many entries the map is certain to hold, if it does not grow.
    pub(crate) fn limit(self) -> Option<usize> {
        match self.room {
            Room::Fixed(entries) => Some(entries),
            Room::Growing | Room::From(_) => None,
        }
    }
}

/// The default segments, segments of two buckets, of sixteen, and one that never splits. Half of the configurations have home
/// cells.
fn with_segments(config: Config) -> [Config; 4] {
    let large = config.segments_of(1 << 20);
    [config.home_cells(), config.segments_of(8).home_cells(), config.segments_of(64), large]
}

/// Maps that grow from one bucket on.
pub(crate) fn growing_configs() -> [Config; 4] {
    with_segments(Config::GROWING)
}

/// Maps that hold `entries` and never grow.
pub(crate) fn fixed_configs(entries: usize) -> [Config; 4] {
    with_segments(Config::fixed(entries))
}

/// Builds a map as the configuration says, if there is memory for it.
macro_rules! try_build {
    ($map:ident, $config:expr, $hasher:expr) => {{
        let Config { room, segment_slots, huge_pages, home_cells } = $config;
        let builder = $map::<K, V>::builder().hasher($hasher).huge_pages(huge_pages);
        let builder = match home_cells {
            Some(yes) => builder.home_cells(yes),
            None => builder,
        };
        let builder = match room {
            Room::Growing => builder,
            Room::From(entries) => builder.capacity(entries),
            Room::Fixed(entries) => builder.fixed_capacity(entries),
        };
        match segment_slots {
            Some(slots) => builder.segment_slots(slots).try_build(),
            None => builder.try_build(),
        }
    }};
}

pub(crate) use try_build;
