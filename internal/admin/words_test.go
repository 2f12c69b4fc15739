package admin

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/peerwire"
	"bellwether/internal/server"
	"bellwether/internal/store"
	"bellwether/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const version = "3.9.5-bellwether-1, built on 2026-11-21 05:30 UTC"

// serve runs a server with this whitelist until the test ends.
func serve(t *testing.T, words ...string) *server.Server {
	t.Helper()
	return serveOn(t, store.NewMem(1), time.Second, words...)
}

// serveOn is like serve, but with the given disk and diskStallLimit.
func serveOn(t *testing.T, disk *store.Mem, limit time.Duration, words ...string) *server.Server {
	t.Helper()
	c := config.Default()
	c.Storage.StallLimit = limit
	c.Client = ensemble.HostPort{Host: "127.0.0.1"}
	c.DataDir, c.DataLogDir = "data", "data"
	c.FourLetterWords = words
	s, err := server.New(server.Options{Config: c, FS: disk, FourLetterWords: New(version).Word})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	return s
}

// ask sends a word and returns the complete answer.
func ask(t *testing.T, s *server.Server, word string) string {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	// The word is sent in two segments, because the network may split it anywhere.
	nc.Write([]byte(word[:2]))
	nc.Write([]byte(word[2:]))
	b, err := io.ReadAll(nc)
	if err != nil {
		t.Fatalf("%s: %v", word, err)
	}
	return string(b)
}

// session opens a session and sends the requests, numbered by xid.
func session(t *testing.T, s *server.Server, timeout int32, requests ...func(xid int32) []byte) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(time.Minute))
	nc.Write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: timeout, Password: make([]byte, 16)}))
	for i := range len(requests) + 1 {
		if i > 0 {
			nc.Write(requests[i-1](int32(i)))
		}
		if _, err := wire.ReadFrame(nc, nil, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	return nc
}

// connections waits until the server has n connections, because it may still list connections that have ended.
func connections(t *testing.T, s *server.Server, n int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); len(s.Connections()) != n; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d connections, want %d", len(s.Connections()), n)
		}
	}
}

func request(op wire.OpCode, r wire.Record) func(int32) []byte {
	return func(xid int32) []byte { return wire.AppendFrame(nil, &wire.RequestHeader{Xid: xid, Op: op}, r) }
}

func create(path string, flags int32) func(int32) []byte {
	return request(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: wire.OpenACL(), Flags: flags})
}

func watch(op wire.OpCode, path string) func(int32) []byte {
	return request(op, &wire.PathWatchRequest{Path: path, Watch: true})
}

// populate creates the state in which the captures were made.
func populate(t *testing.T, s *server.Server) {
	gone := session(t, s, 40_000, create("/w", 0), create("/eph", 0), create("/eph/open-2", wire.FlagEphemeral))
	gone.Close()
	session(t, s, 30_000, watch(wire.OpGetData, "/w"), watch(wire.OpGetChildren, "/w"))
	session(t, s, 20_000, watch(wire.OpExists, "/notyet"), watch(wire.OpGetData, "/w"), create("/w/e", wire.FlagEphemeral))
	connections(t, s, 2)
}

// forms are the captured texts with patterns for the parts that vary. The test also
// compares each form with its capture.
var forms = map[string]string{
	"ruok": `imok`,
	"isro": `rw`,
	"gtmk": `306`,
	"crst": `Connection stats reset\.\n`,
	"srst": `Server stats reset\.\n`,
	"dirs": `datadir_size: \d+\nlogdir_size: \d+\n`,
	"hash": ``,
	"srvr": `Zookeeper version: VERSION\nOVERVIEW`,
	"stat": `Zookeeper version: VERSION\nClients:\n( ADDR\[[01]\]\(queued=\d+,recved=\d+,sent=\d+\)\n)+\nOVERVIEW`,
	"cons": `( ADDR\[0\]\(queued=0,recved=\d+,sent=0\)\n| ADDR\[1\]\(queued=0,recved=\d+,sent=\d+,sid=ID,lop=[A-Z]{4},est=\d{13},to=\d+,lcxid=0x[0-9a-f]+,lzxid=0x[0-9a-f]+,lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)\n)+\n`,
	"wchs": `2 connections watching 2 paths\nTotal watches:3\n`,
	"wchc": `(ID\n(\t/notyet\n)?\t/w\n){2}\n`,
	"wchp": `(/w\n\tID\n\tID\n|/notyet\n\tID\n){2}\n`,
	"dump": `SessionTracker dump:\nSession Sets \(\d\)/\(3\):\n(\d expire at DATE:\n(\tID\n)+)+` +
		`ephemeral nodes dump:\nSessions with Ephemerals \(2\):\n(ID:\n\t/(w/e|eph/open-2)\n){2}` +
		`Connections dump:\nConnections Sets \(\d\)/\(\d\):\n(\d expire at DATE:\n(\tip: ADDR sessionId: (0x0|ID)\n)+)+`,
	"conf": `clientPort=\d+\nsecureClientPort=-1\ndataDir=/.*/version-2\ndataDirSize=\d+\ndataLogDir=/.*/version-2\ndataLogSize=\d+\n` +
		`tickTime=2000\nmaxClientCnxns=60\nminSessionTimeout=4000\nmaxSessionTimeout=40000\nclientPortListenBacklog=-1\nserverId=0\n`,
}

func pattern(t *testing.T, form string) *regexp.Regexp {
	t.Helper()
	form = strings.NewReplacer(
		"OVERVIEW", `Latency min/avg/max: \d+/\d+\.\d{1,4}/\d+\nReceived: \d+\nSent: \d+\nConnections: \d+\nOutstanding: 0\nZxid: 0x[0-9a-f]+\nMode: standalone\nNode count: \d+\n`,
		"VERSION", `3\.[89]\..*, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC`,
		"ADDR", `/127\.0\.0\.1:\d+`,
		"DATE", `[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [A-Z]+ \d{4}`,
		"ID", `0x1[0-9a-f]+`,
	).Replace(form)
	return regexp.MustCompile(`^` + form + `$`)
}

// TestWordsHaveTheCapturedForm shows that the texts have the form of ZooKeeper 3.8.0's.
func TestWordsHaveTheCapturedForm(t *testing.T) {
	b, err := os.ReadFile("testdata/words-3.8.0.json")
	if err != nil {
		t.Fatal(err)
	}
	captured := map[string]string{}
	if err := json.Unmarshal(b, &captured); err != nil {
		t.Fatal(err)
	}
	s := serve(t, "*")
	populate(t, s)
	for word, form := range forms {
		re := pattern(t, form)
		if !re.MatchString(captured[word]) {
			t.Errorf("%s: the form %s does not match the capture\n%s", word, form, captured[word])
		}
		if word == "crst" || word == "srst" {
			continue // these words would change the answers of the other words
		}
		if got := ask(t, s, word); !re.MatchString(got) {
			t.Errorf("%s answers\n%s", word, got)
		}
	}
	for _, word := range []string{"crst", "srst"} {
		if got := ask(t, s, word); !pattern(t, forms[word]).MatchString(got) {
			t.Errorf("%s answers %q", word, got)
		}
	}
}

// own matches the metric names that ZooKeeper 3.8.0 does not have: first those of Bellwether, then those of 3.9.
var own = regexp.MustCompile(`^zk_(..._loop_time_ms|loop_busy_\w+|heavy_requests_held|slow_operations|disk_\w+|(preferred|unfit_leader)_transfer_count|tree_replaced_count|connection_throttled|login_\w+|(client|path)_(requests|bytes)_delayed|limited_requests_refused|` +
	`snapshot_(error|rate_limited)_count|restore_(error|rate_limited)_count|(avg|min|max|cnt|sum)_restore_time)$`)

// TestMntrNames shows that mntr has the names that exporters and dashboards use. Each name
// that is not in own is a name of ZooKeeper 3.8.0, and its value has the same notation.
func TestMntrNames(t *testing.T) {
	b, err := os.ReadFile("testdata/words-3.8.0.json")
	if err != nil {
		t.Fatal(err)
	}
	captured := map[string]string{}
	if err := json.Unmarshal(b, &captured); err != nil {
		t.Fatal(err)
	}
	theirs := fields(captured["mntr"])
	s := serve(t, "*")
	populate(t, s)
	text := ask(t, s, "mntr")
	if !strings.HasPrefix(text, "zk_version\t"+version+"\nzk_server_state\tstandalone\n") {
		t.Errorf("mntr begins %q", text[:min(120, len(text))])
	}
	ours := fields(text)
	for name, value := range ours {
		their, known := theirs[name]
		if !known && own.MatchString(name) {
			continue
		}
		if !known {
			t.Errorf("%s is not a name of ZooKeeper 3.8.0", name)
		} else if name != "zk_version" && name != "zk_server_state" && strings.Contains(value, ".") != strings.Contains(their, ".") {
			t.Errorf("%s prints %s, 3.8.0 prints %s", name, value, their)
		}
	}
	for _, name := range strings.Fields(`avg_latency max_latency min_latency packets_received packets_sent num_alive_connections
		outstanding_requests znode_count watch_count ephemerals_count approximate_data_size open_file_descriptor_count
		max_file_descriptor_count global_sessions local_sessions uptime proposal_count commit_count snap_count
		connection_rejected connection_request_count digest_mismatches_count cnt_fsynctime p99_readlatency p99_updatelatency
		looking_count diff_count learner_commit_received_count cnt_election_time cnt_unavailable_time p99_propagation_latency
		p99_quorum_ack_latency cnt_follower_sync_time snapshot_error_count restore_error_count cnt_restore_time`) {
		if _, there := ours["zk_"+name]; !there {
			t.Errorf("zk_%s is missing", name)
		}
	}
	for name, want := range map[string]string{"zk_ephemerals_count": "2", "zk_znode_count": "9", "zk_global_sessions": "3", "zk_watch_count": "3", "zk_proposal_count": "7",
		"zk_cnt_propagation_latency": "7", "zk_looking_count": "0", "zk_cnt_election_time": "0"} {
		if ours[name] != want {
			t.Errorf("%s is %s, want %s", name, ours[name], want)
		}
	}
}

func fields(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		m[name] = value
	}
	return m
}

// TestWhiteList shows that only the words of the whitelist and srvr are answered, and that
// an unknown word gets no answer.
func TestWhiteList(t *testing.T) {
	s := serve(t, "ruok", "nosuchword")
	for word, want := range map[string]string{
		"ruok": "imok",
		"mntr": "mntr is not executed because it is not in the whitelist.\n",
		"isro": "isro is not executed because it is not in the whitelist.\n",
		"xxxx": "",
	} {
		if got := ask(t, s, word); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
	if got := ask(t, s, "srvr\n"); !strings.HasPrefix(got, "Zookeeper version: "+version+"\n") {
		t.Errorf("srvr: %q", got)
	}
}

// TestTraceMask shows that a complete word is answered whatever follows it, and that stmk
// takes eight bytes.
func TestTraceMask(t *testing.T) {
	s := serve(t, "*")
	for word, want := range map[string]string{"ruok\r\n": "imok", "stmk\x00\x00\x00\x00\x00\x00\x01\x32": "306"} {
		if got := ask(t, s, word); got != want {
			t.Errorf("%q: %q", word, got)
		}
	}
	ask(t, s, "stmk\x00\x00\x00\x00\x00\x00\x00\x02")
	if got := ask(t, s, "gtmk"); got != "2" {
		t.Errorf("gtmk: %q", got)
	}
}

// TestWordsWithoutTheirArgument shows that a word outside the whitelist is refused at once,
// even if it needs an argument. A word of the whitelist whose argument does not arrive gets
// no answer and changes nothing.
func TestWordsWithoutTheirArgument(t *testing.T) {
	all, none := serve(t, "*"), serve(t, "")
	for _, word := range []string{"stmk", "hand"} {
		for _, rest := range []string{"", "\n", "\r\n", "\x00\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00\x00\x01\x33", "\x00\x00\x00\x00\x00\x00\x01\x33more"} {
			if got, want := ask(t, none, word+rest), word+" is not executed because it is not in the whitelist.\n"; got != want {
				t.Errorf("%q: %q, want %q", word+rest, got, want)
			}
			if len(rest) == 2 || len(rest) == 7 {
				if got := ask(t, all, word+rest); got != "" {
					t.Errorf("%q: %q, want no answer", word+rest, got)
				}
			}
		}
	}
	if got := ask(t, all, "gtmk"); got != "306" {
		t.Errorf("gtmk: %q", got)
	}
	for _, mask := range []string{"\xff\xff\xff\xff\xff\xff\xff\xff", "\x7f\xff\xff\xff\xff\xff\xff\xff"} {
		want := ask(t, all, "stmk"+mask)
		if got := ask(t, all, "gtmk"); got != want || got == "306" {
			t.Errorf("gtmk after stmk %q: %q, want %q", mask, got, want)
		}
	}
}

// counted waits until the server and its connections have counted these packets. A packet
// that is sent is counted shortly afterwards.
func counted(t *testing.T, s *server.Server, received, sent, ofConnections int64) {
	t.Helper()
	within(t, "the counts", func() bool {
		n := int64(0)
		for _, c := range s.Connections() {
			n += c.Received + c.Sent
		}
		st := s.Status()
		return st.Received == received && st.Sent == sent && n == ofConnections
	})
}

// TestStatsReset shows that srst and crst reset the counts.
func TestStatsReset(t *testing.T) {
	s := serve(t, "*")
	populate(t, s)
	counted(t, s, 11, 12, 7+8) // the watch event counts as one packet
	ask(t, s, "crst")
	connections(t, s, 2)
	counted(t, s, 12, 13, 0)
	before := fields(ask(t, s, "mntr"))
	ask(t, s, "srst")
	connections(t, s, 2)
	counted(t, s, 0, 1, 0)
	if got := ask(t, s, "srvr"); !strings.Contains(got, "Received: 1\nSent: 1\n") {
		t.Errorf("srvr after srst:\n%s", got)
	}
	if got := ask(t, s, "cons"); strings.Count(got, "recved=0,sent=0,") != 2 {
		t.Errorf("cons after crst:\n%s", got)
	}
	after := fields(ask(t, s, "mntr"))
	for _, name := range []string{"zk_connection_request_count", "zk_cnt_fsynctime", "zk_cnt_updatelatency"} {
		if before[name] == "0" || after[name] != "0" {
			t.Errorf("%s was %s, and after srst it is %s", name, before[name], after[name])
		}
	}
}

// TestWordsWithoutService shows the answers of a server that does not serve.
func TestWordsWithoutService(t *testing.T) {
	c := config.Default()
	c.Client = ensemble.HostPort{}
	c.DataDir, c.DataLogDir = "data", "data"
	c.FourLetterWords = []string{"*"}
	s, err := server.New(server.Options{Config: c, FS: store.NewMem(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	answer := New(version).Word
	for name := range words {
		got, known := answer(s, server.FourLetterWord{Name: name, Local: true, Arg: arg(0)})
		want := notServing + "\n"
		switch name {
		case "hash":
			want = notServing
		case "ruok":
			want = "imok"
		case "isro":
			want = "null"
		case "envi", "gtmk", "stmk":
			want = got
		case "elog":
			want = "[]\n"
		}
		if !known || got != want || got == "" {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !slices.Contains(strings.Split(mustAnswer(answer(s, server.FourLetterWord{Name: "envi"})), "\n"), "zookeeper.version="+version) {
		t.Error("envi does not name the version")
	}
}

func mustAnswer(text string, _ bool) string { return text }

// arg returns an argument that has arrived completely.
func arg(v int64) func() (int64, bool) { return func() (int64, bool) { return v, true } }

// TestTransferWordNeedsTheWhitelist shows that hand, which makes another server lead, is answered if the
// whitelist names it, and for * only to clients on the same machine.
func TestTransferWordNeedsTheWhitelist(t *testing.T) {
	const refused = "hand is not executed because it is not in the whitelist.\n"
	const alone = `{"from":0,"to":0,"epoch":0,"took_ms":0,"error":"this server is standalone"}` + "\n"
	for _, c := range []struct {
		words string
		local bool
		want  string
	}{
		{"", true, refused}, {"srvr,stat", true, refused}, {"*", true, alone}, {"hand", true, alone},
		{"", false, refused}, {"*", false, refused}, {"hand", false, alone}, {"*,hand", false, alone},
	} {
		s := serve(t, strings.Split(c.words, ",")...)
		q := server.FourLetterWord{Name: "hand", Arg: arg(int64(peerwire.NoServer)), Local: c.local}
		if got, known := New(version).Word(s, q); !known || got != c.want {
			t.Errorf("%q, local %v: %q, want %q", c.words, c.local, got, c.want)
		}
		if !c.local {
			continue
		}
		if got := ask(t, s, "hand\x80\x00\x00\x00\x00\x00\x00\x00"); got != c.want {
			t.Errorf("%q over loopback: %q, want %q", c.words, got, c.want)
		}
	}
}

// TestHungDiskIsNamed shows that srvr and mntr name a disk that does not answer, with
// directory, operation, consequence and remedy.
func TestHungDiskIsNamed(t *testing.T) {
	disk := store.NewMem(1)
	s := serveOn(t, disk, 20*time.Millisecond, "*")
	disk.Hang()
	t.Cleanup(disk.EndHang)
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.Write(wire.AppendFrame(nil, &wire.ConnectRequest{TimeoutMS: 40_000, Password: make([]byte, 16)}))
	line := regexp.MustCompile(`(?m)^Serves only in part because: the disk does not answer: \w+ (of|to|for) \S+ in data/version-2 is unanswered since \S+Z; until it answers, writes wait; check the device and its file system$`)
	within(t, "srvr to name the disk", func() bool { return line.MatchString(ask(t, s, "srvr")) })
	if text := ask(t, s, "mntr"); !regexp.MustCompile(`(?m)^zk_slow_disk\t.* in data/version-2 is unanswered since \S+Z$`).MatchString(text) {
		t.Errorf("mntr does not name the disk: %s", text)
	}
}

// TestEnviShowsTheMemoryLimit: os.memory.max is what the process may use, as in ZooKeeper, not what it uses.
func TestEnviShowsTheMemoryLimit(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "123MiB")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(123 << 20))
	if text := envi(New("1"), nil); !strings.Contains(text, "\nos.memory.max=123MB\n") {
		t.Errorf("with a limit of 123 MB:\n%s", text)
	}
}
