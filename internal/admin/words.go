package admin

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/server"
)

// Admin answers four-letter words and the commands of ZooKeeper's AdminServer. It is safe
// for concurrent use.
type Admin struct {
	version string
	mask    atomic.Pointer[int64] // the trace mask; nil: not set
	large   sync.Mutex            // held while a large text is built

	snapshots, restores interval // of the commands snapshot and restore
}

// New returns an Admin. version is the text after "Zookeeper version: " in srvr, in the form that
// tools parse: 3.9.5-bellwether-…, built on ….
func New(version string) *Admin { return &Admin{version: version} }

// traceMask is ZooKeeper's initial trace mask.
const traceMask = 306

// notServing is the answer of a server that is still loading or is ending.
const notServing = "This ZooKeeper instance is not currently serving requests"

// word describes one four-letter word.
type word struct {
	text func(w *Admin, s *server.Server) string
	// idle: the word is answered even if the server does not serve.
	idle bool
	// arg: eight bytes follow the word.
	arg bool
	// large: the text may have a line for each watch or ephemeral. Only one such
	// text is built at a time, because it takes CPU time and much memory.
	large bool
}

var words = map[string]word{
	"conf":       {text: conf},
	"cons":       {text: cons},
	"crst":       {text: crst},
	"dirs":       {text: dirs},
	"dump":       {text: dump, large: true},
	"elog":       {text: elections, idle: true},
	"envi":       {text: envi, idle: true},
	"gtmk":       {text: gtmk, idle: true},
	transferWord: {arg: true},
	"hash":       {text: hash},
	"isro":       {text: isro, idle: true},
	"mntr":       {text: mntr},
	"ruok":       {text: func(*Admin, *server.Server) string { return "imok" }, idle: true},
	"srst":       {text: srst},
	"srvr":       {text: srvr},
	"stat":       {text: stat},
	"stmk":       {text: gtmk, idle: true, arg: true},
	"trac":       {text: trac, large: true},
	"wchc":       {text: wchc, large: true},
	"wchp":       {text: wchp, large: true},
	"wchs":       {text: wchs, large: true},
}

// Word returns the text of a four-letter word, for server.Options.FourLetterWords; known is
// false if there is no such word.
func (w *Admin) Word(s *server.Server, q server.FourLetterWord) (text string, known bool) {
	name := q.Name
	e, known := words[name]
	switch {
	case !known:
		return "", false
	case !s.Config().AllowsWord(name), name == transferWord && !q.Local && !slices.Contains(s.Config().FourLetterWords, name):
		return name + " is not executed because it is not in the whitelist.\n", true
	case name == "hash" && !s.Serving():
		return notServing, true
	case !e.idle && !s.Serving():
		return whyNotServing(s), true
	}
	if e.large {
		w.large.Lock()
		defer w.large.Unlock()
	}
	if !e.arg {
		return e.text(w, s), true
	}
	arg, whole := q.Arg()
	switch {
	case !whole:
		return "", true
	case name == transferWord:
		return hand(s, ensemble.ServerID(arg)), true
	}
	w.mask.Store(&arg)
	return e.text(w, s), true
}

func isro(_ *Admin, s *server.Server) string {
	switch serves, readOnly := s.Service(); {
	case !serves:
		return "null"
	case readOnly:
		return "ro"
	}
	return "rw"
}

func gtmk(w *Admin, _ *server.Server) string { return fmt.Sprint(w.traceMask()) }

// traceMask returns the trace mask that was last set.
func (w *Admin) traceMask() int64 {
	if m := w.mask.Load(); m != nil {
		return *m
	}
	return traceMask
}

func srst(_ *Admin, s *server.Server) string {
	s.ResetStats()
	return "Server stats reset.\n"
}

func crst(_ *Admin, s *server.Server) string {
	s.ResetConnections()
	return "Connection stats reset.\n"
}

func srvr(w *Admin, s *server.Server) string { return overview(w, s, "") }

func stat(w *Admin, s *server.Server) string {
	var b strings.Builder
	b.WriteString("Clients:\n")
	for _, c := range s.Connections() {
		fmt.Fprintf(&b, " %s\n", brief(&c))
	}
	b.WriteByte('\n')
	return overview(w, s, b.String())
}

// overview returns the text of srvr, with clients after the version.
func overview(w *Admin, s *server.Server, clients string) string {
	st := s.Status()
	var b strings.Builder
	fmt.Fprintf(&b, "Zookeeper version: %s\n", w.version)
	mode := st.Mode
	if st.ReadOnly {
		b.WriteString("READ-ONLY mode; serving only read-only clients\n")
		mode = "read-only"
	}
	b.WriteString(clients)
	fmt.Fprintf(&b, "Latency min/avg/max: %.0f/%s/%.0f\n", st.LatencyMin, decimal(st.LatencyAverage), st.LatencyMax)
	fmt.Fprintf(&b, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n", st.Received, st.Sent, st.Connections, st.Outstanding)
	fmt.Fprintf(&b, "Zxid: %v\nMode: %s\nNode count: %d\n", st.Zxid, mode, st.Nodes)
	if st.Reason != "" {
		fmt.Fprintf(&b, "Read-only because: %s\n", st.Reason)
	}
	for _, why := range st.Partial() {
		fmt.Fprintf(&b, "Serves only in part because: %s\n", why)
	}
	if st.SlowCall > 0 {
		fmt.Fprintf(&b, "Slow disk: a call took %d ms within the last two minutes\n", st.SlowCall.Milliseconds())
	}
	if st.Unfit != "" {
		fmt.Fprintf(&b, "Should not lead: %s\n", st.Unfit)
	}
	if st.Prefers != peerwire.NoServer {
		fmt.Fprintf(&b, "Preferred leader: server %d, when it has kept up for %v\n", st.Prefers, st.PrefersFor)
	}
	if p := st.Proposals; p != nil {
		fmt.Fprintf(&b, "Proposal sizes last/min/max: %d/%d/%d\n", p.Last, p.Min, p.Max)
	}
	if at := st.ClientCertificate; !at.IsZero() {
		fmt.Fprintf(&b, "Certificate for clients expires: %s\n", at.UTC().Format(time.RFC3339))
	}
	if at := st.QuorumCertificate; !at.IsZero() {
		fmt.Fprintf(&b, "Certificate between servers expires: %s\n", at.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// whyNotServing returns the answer of a server that does not serve: ZooKeeper's line,
// and a line about a disk that does not answer.
func whyNotServing(s *server.Server) string {
	if st := s.Status(); st.Disk != nil {
		return notServing + "\n" + st.SlowDiskText() + "\n"
	}
	return notServing + "\n"
}

func conf(_ *Admin, s *server.Server) string {
	c := s.Config()
	sizes, err := s.Sizes()
	if err != nil {
		sizes.Snapshots, sizes.Logs = -1, -1
	}
	port := -1
	if a, ok := s.Addr().(*net.TCPAddr); ok {
		port = a.Port
	}
	secured := -1
	if a, ok := s.SecureAddr().(*net.TCPAddr); ok {
		secured = a.Port
	}
	id := int64(0) // a standalone server has id 0, whatever myid contains
	if !c.Standalone() {
		id = int64(c.Ensemble.ID)
	}
	var b strings.Builder
	for _, l := range []struct {
		key   string
		value any
	}{
		{"clientPort", port}, {"secureClientPort", secured},
		{"dataDir", version2(c.DataDir)}, {"dataDirSize", sizes.Snapshots},
		{"dataLogDir", version2(c.DataLogDir)}, {"dataLogSize", sizes.Logs},
		{"tickTime", c.TickTime.Milliseconds()}, {"maxClientCnxns", c.Limits.ClientCnxns},
		{"minSessionTimeout", c.MinSessionTimeout.Milliseconds()}, {"maxSessionTimeout", c.MaxSessionTimeout.Milliseconds()},
		{"clientPortListenBacklog", c.Limits.Backlog}, {"serverId", id},
	} {
		fmt.Fprintf(&b, "%s=%v\n", l.key, l.value)
	}
	if !c.Standalone() {
		member(&b, s)
	}
	return b.String()
}

// member writes what conf adds in an ensemble: the limits, this server's ports,
// and the membership, which has no line feed at its end.
func member(b *strings.Builder, s *server.Server) {
	e := &s.Config().Ensemble
	self, _ := e.Members.Server(e.ID)
	var quorum, election []string
	for _, a := range self.Addresses {
		quorum, election = append(quorum, fmt.Sprint(a.QuorumPort)), append(election, fmt.Sprint(a.ElectionPort))
	}
	fmt.Fprintf(b, "initLimit=%d\nsyncLimit=%d\nelectionAlg=3\nelectionPort=%s\nquorumPort=%s\npeerType=%d\nmembership: \n%v",
		e.InitLimit, e.SyncLimit, strings.Join(election, "|"), strings.Join(quorum, "|"), self.Role, e.Members)
}

func dirs(_ *Admin, s *server.Server) string {
	sizes, err := s.Sizes()
	if err != nil {
		return "sizes are not known: " + err.Error() + "\n"
	}
	return fmt.Sprintf("datadir_size: %d\nlogdir_size: %d\n", sizes.Snapshots, sizes.Logs)
}

func hash(_ *Admin, s *server.Server) string {
	var b strings.Builder
	for _, e := range s.Tree().DigestHistory() {
		fmt.Fprintf(&b, "%x: %d\n", uint64(e.Zxid), e.Digest)
	}
	return b.String()
}

func mntr(w *Admin, s *server.Server) string {
	var b strings.Builder
	for _, l := range w.monitored(s) {
		if v, ok := l.value.(float64); ok {
			l.value = javaDouble(v)
		}
		fmt.Fprintf(&b, "zk_%s\t%v\n", l.name, l.value)
	}
	return b.String()
}

// monitored returns the names and values of mntr.
func (w *Admin) monitored(s *server.Server) object {
	st := s.Status()
	o := object{{"version", w.version}, {"server_state", state(&st)}}
	if st.Peer != "" {
		o = append(o, field{"peer_state", st.Peer})
	}
	if st.Disk != nil {
		o = append(o, field{"slow_disk", st.Disk.String()})
	}
	return append(o, figures(s)...)
}

// figures returns all metrics, in the form of the metrics provider that the configuration
// names.
func figures(s *server.Server) (o object) {
	switch provider := &s.Config().Metrics; {
	case provider.Off():
		return nil
	case provider.OwnPort():
		lines, err := s.Metrics().PrometheusLines()
		if err != nil {
			o = append(o, field{"metrics_error", err.Error()})
		}
		for _, m := range lines {
			o = append(o, field{m.Name, number(m.Value)})
		}
		return o
	}
	for _, m := range s.Metrics().Samples() {
		if m.Integer {
			o = append(o, field{m.Name, int64(m.Value)})
		} else {
			o = append(o, field{m.Name, rounded(m.Value)})
		}
	}
	return o
}
