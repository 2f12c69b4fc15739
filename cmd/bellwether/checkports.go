package main

import (
	"errors"
	"fmt"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
)

// keyedPort is a port that a server opens, with the key of the configuration that names it.
type keyedPort struct {
	key string
	at  ensemble.HostPort
}

// trySamePorts returns an error for each two ports of a configuration that cannot both be opened, because they are the same.
// The pair of client ports has a check of its own.
func trySamePorts(c *config.Config) error {
	ports := []keyedPort{{"clientPort", c.Client}, {"secureClientPort", c.TLS.Client}}
	clients := len(ports)
	if c.Admin.Enabled {
		ports = append(ports, keyedPort{"admin.serverPort", c.Admin.Address})
	}
	if c.Metrics.OwnPort() {
		ports = append(ports, keyedPort{"metricsProvider.httpPort", c.Metrics.Address})
	}
	if !c.Standalone() {
		self, _ := c.Ensemble.Members.Server(c.Ensemble.ID)
		key := fmt.Sprintf("server.%d", self.ID)
		for _, a := range self.Addresses {
			ports = append(ports, keyedPort{key, ensemble.HostPort{Host: a.Host, Port: a.QuorumPort}}, keyedPort{key, ensemble.HostPort{Host: a.Host, Port: a.ElectionPort}})
		}
	}
	var found []error
	for i, one := range ports {
		for _, other := range ports[max(i+1, clients):] {
			if one.key != other.key && overlap(one.at, other.at) {
				found = append(found, fmt.Errorf("%s and %s are the same port, %d: choose another one for %s", one.key, other.key, one.at.Port, other.key))
			}
		}
	}
	return errors.Join(found...)
}

// overlap reports whether two addresses as they are written cannot be open at the same time.
func overlap(x, y ensemble.HostPort) bool {
	return x.Port == y.Port && x.Port != 0 && (x.Host == y.Host || x.IsWildcard() || y.IsWildcard())
}
