package server

import (
	"bytes"
	"io"
	"log/slog"
	"testing"

	"bellwether/internal/config"
	"bellwether/wire"
)

// limitsToMeasure returns sets of limits, from none to many, that are so high that they delay
// nothing.
func limitsToMeasure() map[string]config.Rates {
	paths := []config.PathRate{{Path: "/app/jobs/done", PerSecond: 1e9}, {Path: "/app/jobs", PerSecond: 1e9}, {Path: "/app", PerSecond: 1e9}}
	return map[string]config.Rates{
		"off": {}, "client": {Requests: 1e9, Bytes: 1e9}, "paths": {PathRequests: paths},
		"all": {Requests: 1e9, Bytes: 1e9, PathRequests: paths, PathBytes: paths},
	}
}

// BenchmarkLimitRate measures what the limits cost each request.
func BenchmarkLimitRate(b *testing.B) {
	for name, rates := range limitsToMeasure() {
		b.Run(name, func(b *testing.B) {
			o := limited(rates)
			o.Log = slog.New(slog.DiscardHandler)
			s := start(b, o)
			s.connect()
			c := s.conns.all()[0]
			body := wire.Append(nil, &wire.PathWatchRequest{Path: "/app/job"})
			var now batch
			b.ReportAllocs()
			for b.Loop() {
				c.limitRate(wire.OpGetData, body, len(body)+headerLen, &now)
			}
		})
	}
}

// BenchmarkReadsWithLimits measures reads of one client that sends 64 at a time.
func BenchmarkReadsWithLimits(b *testing.B) {
	for name, rates := range limitsToMeasure() {
		b.Run(name, func(b *testing.B) {
			o := limited(rates)
			o.Log = slog.New(slog.DiscardHandler)
			c := start(b, o).connect()
			const each = 64
			read := request(1, wire.OpExists, &wire.PathWatchRequest{Path: "/"})
			answer := make([]byte, 4+wire.ReplyHeaderLen+len(wire.Append(nil, &wire.Stat{})))
			b.ReportAllocs()
			for b.Loop() {
				c.write(bytes.Repeat(read, each))
				for range each {
					if _, err := io.ReadFull(c.nc, answer); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/each, "ns/read")
		})
	}
}
