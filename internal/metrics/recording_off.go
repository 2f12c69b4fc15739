//go:build nometrics

package metrics

// recording: see the other file.
const recording = false
