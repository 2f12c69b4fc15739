package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"bellwether/internal/admin/elog"
	"bellwether/internal/config"
	"bellwether/internal/ensemble"
	"bellwether/internal/portblock"
	"bellwether/internal/server"
	"bellwether/internal/store"
)

// member5 runs server 5, the only member of its ensemble, on this disk.
func member5(t *testing.T, fs store.FS) (s *server.Server, line string, quorum, election int) {
	t.Helper()
	free, err := portblock.Free("127.0.0.1", 2)
	if err != nil {
		t.Fatal(err)
	}
	quorum, election = free[0], free[1]
	line = fmt.Sprintf("server.5=127.0.0.1:%d:%d:participant", quorum, election)
	m, err := ensemble.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Client = ensemble.HostPort{Host: "127.0.0.1"}
	c.DataDir, c.DataLogDir = "data", "data"
	c.FourLetterWords = []string{"*"}
	c.Ensemble.Members, c.Ensemble.ID, c.Ensemble.HasID, c.Ensemble.StandaloneEnabled = m, 5, true, false
	c.Ensemble.InitLimit, c.Ensemble.SyncLimit = 10, 5
	if s, err = server.New(server.Options{Config: c, FS: fs, FourLetterWords: New(version).Word}); err != nil {
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
	return s, line, quorum, election
}

// TestWordsOfAMember shows that a server of an ensemble reports its role in ZooKeeper's words.
func TestWordsOfAMember(t *testing.T) {
	s, line, quorum, election := member5(t, store.NewMem(1))
	tail := fmt.Sprintf("serverId=5\ninitLimit=10\nsyncLimit=5\nelectionAlg=3\nelectionPort=%d\nquorumPort=%d\npeerType=0\nmembership: \n%s\nversion=0",
		election, quorum, line)
	if got := ask(t, s, "conf"); !strings.HasSuffix(got, tail) {
		t.Errorf("conf:\n%s\nwant at its end\n%s", got, tail)
	}
	for word, want := range map[string]string{
		"srvr": "Mode: leader\nNode count: 5\nProposal sizes last/min/max: -1/-1/-1\n",
		"mntr": "zk_server_state\tleader\nzk_peer_state\tleading - broadcast\n",
		"isro": "rw",
	} {
		if got := ask(t, s, word); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s\nwithout\n%s", word, got, want)
		}
	}
	for _, want := range []string{"zk_quorum_size\t1\n", "zk_learners\t0\n", "zk_synced_followers\t0\n", "zk_synced_observers\t0\n",
		"zk_synced_non_voting_followers\t0\n", "zk_leader_uptime\t", "zk_cnt_election_time\t1\n", "zk_looking_count\t1\n"} {
		if got := ask(t, s, "mntr"); !strings.Contains(got, want) {
			t.Errorf("mntr does not contain %q", want)
		}
	}
	checkElog(t, ask(t, s, "elog"))
}

// TestWordsOfAFullDisk shows that a member whose disk is full reports that it is read-only
// and why, and later that it no longer is.
func TestWordsOfAFullDisk(t *testing.T) {
	disk := store.NewMem(1)
	s, _, _, _ := member5(t, disk)
	nc := session(t, s, 30_000, create("/a", 0))
	disk.SetSpace(0)
	for i := range int32(200) {
		nc.Write(create(fmt.Sprintf("/b%d-%0200d", i, 0), 0)(2 + i))
	}
	says := func(word, want string) bool { return strings.Contains(ask(t, s, word), want) }
	within(t, "read-only state", func() bool { return says("isro", "ro") })
	for word, want := range map[string]string{
		"srvr": "\nRead-only because: no space for the transaction log after 0x1",
		"stat": "\nREAD-ONLY mode; serving only read-only clients\n",
		"mntr": "zk_server_state\tread-only\n",
	} {
		if !says(word, want) {
			t.Errorf("%s does not contain %q:\n%s", word, want, ask(t, s, word))
		}
	}
	disk.SetSpace(-1)
	// An answer that was begun in read-only state may mix both states.
	within(t, "leading again", func() bool { return says("isro", "rw") && says("srvr", "Mode: leader") })
	if got := ask(t, s, "srvr"); strings.Contains(got, "ead-only") {
		t.Errorf("srvr: %s", got)
	}
}

// within waits for a condition.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for: %s", what)
		}
	}
}

// checkElog checks server 5's record of its own election: the fields for programs, and
// the texts for people.
func checkElog(t *testing.T, text string) {
	t.Helper()
	var all []elog.Election
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) != 1 {
		t.Fatalf("elog: %v\n%s", err, text)
	}
	e := all[0]
	if e.Server != 5 || e.Leader == nil || *e.Leader != 5 || e.State != "LEADING" || e.Phase != "serve" || e.Epoch != 1 || e.Why != "started" ||
		len(e.Rounds) != 1 || e.Own.Leader != 5 || e.Own.Zxid != "0x0" || e.Ended != "" {
		t.Errorf("elog: %+v", e)
	}
	if age := time.Since(e.Began); age < 0 || age > time.Hour {
		t.Errorf("began at %v", e.Began)
	}
	if !strings.HasPrefix(e.Line, "server 5 round 1: started; LEADING 5, ") || !strings.HasPrefix(e.Explanation, "Server 5 looked for a leader: started.\n") {
		t.Errorf("line %q, story %q", e.Line, e.Explanation)
	}
}
