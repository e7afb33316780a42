// Tiles written by hand, included by kernels.cc inside the unit's namespace. Each is `void body(const GemmTile& t)`
// under the #if of its instruction set, computes all rows of the tile and t.n columns of its last vector, and has a
// line SKUA_TILE_BY_HAND(rows, columns, body, why) in tiles.def; smaller parts of the tile use the template. A body
// earns its place by being at least 10% faster than the template on a core that its `why` names.
