package config

import (
	"encoding/base64"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"bellwether/internal/ensemble"
)

// check checks rules that involve several settings, after each has been read.
func (l *loader) check() {
	c := l.c
	if c.DataDir == "" && len(l.errsOf("dataDir")) == 0 {
		l.failKey("dataDir", "is not set", "add a line dataDir=PATH with the directory for snapshots and myid")
	}
	l.checkClient()
	l.checkAddresses()
	l.checkSuper()
	l.checkConnectionThrottle()
	l.checkAdmin()
	l.checkQuorumSASL()
	c.derive()
	l.checkTick()
	if c.MinSessionTimeout > c.MaxSessionTimeout && len(l.errs) == 0 {
		name := "minSessionTimeout"
		if _, given := l.settings[name]; !given {
			name = "maxSessionTimeout"
		}
		l.failKey(name, fmt.Sprintf("makes the shortest session timeout (%v) longer than the longest (%v)", c.MinSessionTimeout, c.MaxSessionTimeout),
			"set minSessionTimeout to at most maxSessionTimeout; their defaults are 2 and 20 × tickTime")
	}
}

// timeMax is the longest time that fits into an int of Java in ms, and so into ZooKeeper's messages.
const timeMax = math.MaxInt32 * time.Millisecond

// checkTick refuses a tickTime from which a session timeout follows that is too long. A timeout that is written
// itself is never too long.
func (l *loader) checkTick() {
	for _, t := range []struct {
		what, key string
		is        time.Duration
	}{
		{"longest session timeout, 20", "maxSessionTimeout", l.c.MaxSessionTimeout},
		{"shortest session timeout, 2", "minSessionTimeout", l.c.MinSessionTimeout},
	} {
		if t.is > timeMax {
			l.failKey("tickTime", fmt.Sprintf("makes the %s × tickTime, %d ms, but at most %d ms are possible", t.what, t.is.Milliseconds(), timeMax.Milliseconds()),
				"lower tickTime, or set "+t.key)
			return
		}
	}
}

// errsOf returns the errors recorded so far about a key.
func (l *loader) errsOf(name string) []*Error {
	var found []*Error
	for _, e := range l.errs {
		if e.Key == name {
			found = append(found, e)
		}
	}
	return found
}

// checkClient determines the client address from zoo.cfg alone.
func (l *loader) checkClient() {
	_, port := l.settings["clientPort"]
	_, address := l.settings["clientPortAddress"]
	switch {
	case address && !port:
		l.failKey("clientPortAddress", "is set but clientPort is not", "add a line clientPort=2181, or remove the address")
	case port && !address:
		l.c.Client.Host = ensemble.Wildcard
	case !port:
		l.c.Client = ensemble.HostPort{}
	}
}

// checkAddresses removes the brackets of literal IPv6 addresses.
func (l *loader) checkAddresses() {
	for _, h := range []*string{&l.c.Client.Host, &l.c.TLS.Client.Host, &l.c.Admin.Address.Host, &l.c.Metrics.Address.Host} {
		if strings.HasPrefix(*h, "[") && strings.HasSuffix(*h, "]") {
			*h = (*h)[1 : len(*h)-1]
		}
	}
}

// checkSuper checks the form of the super user's digest: a wrong one would never match
// and cause no error.
func (l *loader) checkSuper() {
	digest := l.c.Access.SuperDigest
	if digest == "" {
		return
	}
	name, hash, _ := strings.Cut(digest, ":")
	raw, err := base64.StdEncoding.DecodeString(hash)
	if size := l.c.Access.DigestHash.Size(); name == "" || err != nil || len(raw) != size {
		const super = "DigestAuthenticationProvider.superDigest"
		l.failKey(super, "is not allowed", "compute the hash over the name and the password, not over the password alone")
		l.errs[len(l.errs)-1].Allowed = fmt.Sprintf("NAME:HASH, where HASH is the base64 of the %v of NAME:PASSWORD, %d bytes", l.c.Access.DigestHash, size)
	}
}

// warn adds a warning for each setting that is allowed but unwise.
func (l *loader) warn() {
	c := l.c
	l.warnDirs()
	if c.Client.IsZero() && c.TLS.Client.IsZero() {
		l.warning(c.File, 0, "clientPort", "is set neither here nor in this server's server line: no client can connect")
	}
	l.warnRaised("autopurge.snapRetainCount", c.Autopurge.Retain)
	l.warnRaised("snapCount", c.Storage.SnapCount)
	l.warnIf(c.Autopurge.Interval <= 0, "autopurge.purgeInterval", "is 0: old snapshots and logs are never deleted")
	l.warnIf(!c.Storage.ForceSync, "forceSync", "is no: a power failure loses acknowledged writes")
	l.warnIf(c.Access.SkipACL, "skipACL", "is yes: every client may read and change everything")
	l.warnIf(!c.Storage.Digest, "digest.enabled", "is false: damage to the tree in memory is not detected")
	l.warnIf(c.Storage.TrustEmpty, "snapshot.trust.empty", "is true: lost snapshots are not detected; remove the key after the first start")
	l.warnIf(c.TLS.ClientUnified && c.Client.IsZero(), "client.portUnification", "is true, but there is no clientPort: no port accepts connections with and without TLS; add clientPort, or remove the key")
	l.warnMetrics()
	l.warnSecrets()
	l.warnTLS()
	l.warnSASL()
	l.warnAdmin()
	l.warnMembers()
}

// warnMetrics warns about an address for metrics that no provider uses.
func (l *loader) warnMetrics() {
	for _, key := range []string{"metricsProvider.httpHost", "metricsProvider.httpPort"} {
		_, given := l.settings[key]
		l.warnIf(given && !l.c.Metrics.OwnPort(), key, "has no effect without metricsProvider.className="+prometheusMetric+", as in ZooKeeper: no port is opened for metrics")
	}
}

// warnDirs warns about data directories in doubtful places.
func (l *loader) warnDirs() {
	for _, name := range []string{"dataDir", "dataLogDir"} {
		v, given := l.settings[name]
		dir := v.value
		if !given {
			continue
		}
		if !filepath.IsAbs(dir) && !strings.HasPrefix(dir, ".") {
			l.warning(v.file, v.line, v.name, "is relative to the working directory; write ./ before the path if this is intended")
		}
		if strings.HasPrefix(filepath.Clean(dir)+"/", "/tmp/") {
			l.warning(v.file, v.line, v.name, "is under /tmp, which many systems empty at boot")
		}
	}
}

// warnRaised warns about a number below its minimum, which was raised to now.
func (l *loader) warnRaised(name string, now int) {
	v, given := l.settings[name]
	if !given {
		return
	}
	if n, ok := v.key.readNumber(v.value); ok && n < int64(now) {
		l.warning(v.file, v.line, v.name, fmt.Sprintf("is %d, below the minimum; %d is used", n, now))
	}
}

// warnIf adds a warning at the line where name is set, if yes.
func (l *loader) warnIf(yes bool, name, why string) {
	if !yes {
		return
	}
	v, given := l.settings[name]
	if !given {
		v = setting{file: l.c.File, name: name}
	}
	l.warning(v.file, v.line, v.name, why)
}

// warnRefusal adds a warning about a setting with which every client, or every client that logs in, is refused.
func (l *loader) warnRefusal(name, why string) {
	l.warnIf(true, name, why)
	l.c.Warnings[len(l.c.Warnings)-1].RefusesClients = true
}

// warnMembers adds the warnings of the membership itself.
func (l *loader) warnMembers() {
	m := l.c.Ensemble.Members
	if m == nil {
		return
	}
	for _, w := range m.Warnings() {
		if w.Rule == ensemble.OneVoter && l.c.Standalone() {
			w.Text = "names one participant only, so the server runs standalone; set standaloneEnabled=false for an ensemble of one"
			l.warning(l.memberFile(), l.memberLine(), "server."+fmt.Sprint(m.Voters()[0]), w.Text)
			continue
		}
		l.warning(l.memberFile(), 0, "", w.Text)
	}
}
