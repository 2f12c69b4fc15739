//go:build race

package zk

// raceDetector: pools drop things on purpose, so allocations say nothing.
const raceDetector = true
