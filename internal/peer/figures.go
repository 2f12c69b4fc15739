package peer

import "bellwether/internal/metrics"

// Figures count since the start. Those of a [Mesh] are of notifications, those
// of [Links] of packets.
type Figures struct {
	Connections   metrics.Counter // made, in either direction
	Refused       metrics.Counter // connections turned away, and why is logged
	DialFailures  metrics.Counter
	Sent          metrics.Counter
	Received      metrics.Counter
	Replaced      metrics.Counter // unsent, overtaken by a newer message
	Dropped       metrics.Counter // received and not understood, or sent to nobody
	BytesSent     metrics.Counter
	BytesReceived metrics.Counter
}
