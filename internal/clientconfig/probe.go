package clientconfig

import "bellwether/internal/secure"

// Probe returns a probe of a port with TLS, which connects to address with the certificates of
// the configuration.
func (c *Config) Probe(address string) secure.Probe {
	if c == nil || c.tls == nil {
		return secure.Probe{Address: address, RootsFrom: "--" + flagCA}
	}
	p := c.tls.store.Probe(address, c.tls.serverName)
	p.RootsFrom = c.tls.words.Replace(trustStore + location)
	return p
}
