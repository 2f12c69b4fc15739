package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/zk"
)

// patience is the timeout of every wait.
const patience = 60 * time.Second

// token signs the operator ada in.
const token = "a-token-of-the-tests-0123456789abcdef"

// member is one server process of an ensemble.
type member struct {
	id            int
	client, admin string // addresses
	dir           string
	cmd           *exec.Cmd
	log           bytes.Buffer
}

// url returns the address of a page of the server.
func (m *member) url(path string) string { return "http://" + m.admin + path }

// servers runs an ensemble of three processes until the test ends. Each has an admin port, on which ada can sign in.
func servers(t testing.TB) []*member {
	t.Helper()
	bin, err := target.Binary()
	if err != nil {
		t.Fatal(err)
	}
	const n = 3
	var ports []string
	for range 4 * n {
		ports = append(ports, target.FreePort(t))
	}
	var lines strings.Builder
	all := make([]*member, n)
	for i := range all {
		p := ports[4*i : 4*i+4]
		all[i] = &member{id: i + 1, client: "127.0.0.1:" + p[2], admin: "127.0.0.1:" + p[3], dir: t.TempDir()}
		fmt.Fprintf(&lines, "server.%d=127.0.0.1:%s:%s:participant;127.0.0.1:%s\n", i+1, p[0], p[1], p[2])
	}
	for i, m := range all {
		m.configure(t, lines.String(), ports[4*i+3])
		m.start(t, bin)
	}
	for _, m := range all {
		m.await(t)
	}
	return all
}

func (m *member) configure(t testing.TB, lines, adminPort string) {
	t.Helper()
	for name, text := range map[string]string{
		"operators": "ada " + token + "\n",
		"data/myid": fmt.Sprintln(m.id),
		"zoo.cfg": fmt.Sprintf("tickTime=500\ninitLimit=20\nsyncLimit=10\ndataDir=%s\npreAllocSize=1024\nmaxClientCnxns=0\n4lw.commands.whitelist=*\n"+
			"admin.serverAddress=127.0.0.1\nadmin.serverPort=%s\nadmin.tokenFile=%s\nstandaloneEnabled=false\n%s",
			filepath.Join(m.dir, "data"), adminPort, filepath.Join(m.dir, "operators"), lines),
	} {
		file := filepath.Join(m.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// start starts the process, which ends with the test at the latest.
func (m *member) start(t testing.TB, bin string) {
	t.Helper()
	m.cmd = exec.Command(bin, "serve", "--config", filepath.Join(m.dir, "zoo.cfg"), "--while-stdin")
	in, err := m.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.cmd.Stdout, m.cmd.Stderr = &m.log, &m.log
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd := m.cmd
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // it may have been killed
		if t.Failed() {
			t.Logf("log of server %d:\n%s", m.id, m.log.String())
		}
	})
}

// kill ends the process as a crash would.
func (m *member) kill(t testing.TB) {
	t.Helper()
	if err := m.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// await waits until the server serves clients.
func (m *member) await(t testing.TB) {
	t.Helper()
	until(t, fmt.Sprintf("server %d to serve", m.id), func() error {
		r, err := http.Get(m.url("/readyz"))
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if b, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK {
			return errors.New(string(b))
		}
		return nil
	})
}

// until waits until check returns nil.
func until(t testing.TB, what string, check func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waiting for %s: %v", what, err)
		}
	}
}

// leader returns the server that leads, and one that follows.
func leader(t testing.TB, all []*member) (leads, follows *member) {
	t.Helper()
	until(t, "a leader", func() error {
		leads, follows = nil, nil
		for _, m := range all {
			switch text, err := target.Word(m.client, "srvr"); {
			case err != nil:
			case strings.Contains(text, "Mode: leader"):
				leads = m
			case strings.Contains(text, "Mode: follower"):
				follows = m
			}
		}
		if leads == nil || follows == nil {
			return errors.New("there is none")
		}
		return nil
	})
	return leads, follows
}

// client returns a client of a server.
func client(t testing.TB, m *member) *zk.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	zc, err := zk.Connect(ctx, m.client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { zc.Close(context.Background()) })
	return zc
}
