package main

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"

	"bellwether/internal/config"
	"bellwether/internal/scrape"
	"bellwether/internal/server"
)

// metricsPage returns the page /metrics of a server; nil if the configuration excludes it.
func metricsPage(c *config.Config, s *server.Server, log *slog.Logger) http.Handler {
	if c.Metrics.Off() {
		return nil
	}
	return scrape.Handler(scrape.Options{Metrics: s.Metrics(), Version: release, Process: c.Metrics.Process, Memory: server.MemoryMax(), Log: log})
}

// openMetrics opens the port for metrics; nil if the configuration asks for none.
func openMetrics(c *config.Config, s *server.Server, log *slog.Logger) (*scrape.Port, error) {
	if !c.Metrics.OwnPort() {
		return nil, nil
	}
	port, err := scrape.Open(metricsAddress(c), metricsPage(c, s, log), log)
	if err != nil {
		return nil, err
	}
	log.Info("metrics at http://"+port.Addr().String()+"/metrics", "exportJvmInfo", c.Metrics.Process)
	return port, nil
}

// metricsAddress returns the address of the port for metrics.
func metricsAddress(c *config.Config) string {
	at := c.Metrics.Address
	if at.IsWildcard() {
		at.Host = "" // IPv4 and IPv6
	}
	return net.JoinHostPort(at.Host, strconv.Itoa(at.Port))
}

// tryMetricsPort returns the error that a start would return for the port for metrics. It returns nil if
// the port is in use, because the process that uses it may be the server that is to be restarted.
func tryMetricsPort(c *config.Config) error {
	if !c.Metrics.OwnPort() {
		return nil
	}
	port, err := scrape.Open(metricsAddress(c), http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	if err != nil {
		return err
	}
	return port.Close()
}
