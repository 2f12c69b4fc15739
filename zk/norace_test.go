//go:build !race

package zk

const raceDetector = false
