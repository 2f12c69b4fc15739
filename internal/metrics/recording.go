//go:build !nometrics

package metrics

// recording says that counters and summaries record what they are told. The build tag nometrics
// makes a program that does not, to measure what metrics cost (interop/compare -metrics).
const recording = true
