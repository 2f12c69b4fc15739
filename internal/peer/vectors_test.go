package peer

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"testing"
)

// recorded is the part of the recorded conversations that is used here.
type recorded struct {
	Vectors, Probes, InitialProbes []struct {
		Name, Kind, Hex, Expected string
		From, To                  any
	}
}

func electionVectors(t *testing.T) recorded {
	t.Helper()
	b, err := os.ReadFile("../peerwire/testdata/election.json")
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func itoa(n int) string { return strconv.Itoa(n) }

// logLines returns a logger, and a function that returns what it has logged so far.
func logLines() (*slog.Logger, func() string) {
	w := &lockedBuffer{}
	return slog.New(slog.NewTextHandler(w, nil)), w.String
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type zabVector struct{ Name, Kind, Hex string }

func zabVectors(t *testing.T) []zabVector {
	t.Helper()
	b, err := os.ReadFile("../peerwire/testdata/zab.json")
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Vectors []zabVector }
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r.Vectors
}
