//go:build race

package recipe

// raceDetector is set under the race detector, with which tests of a thousand participants would take
// minutes.
const raceDetector = true
