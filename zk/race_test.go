//go:build race

package zk

// raceDetector is set if the race detector is on. Pools then drop values on purpose, so the tests cannot
// count allocations.
const raceDetector = true
