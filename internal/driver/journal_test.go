package driver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"bellwether/internal/record"
	"bellwether/internal/replica"
	"bellwether/internal/zab"
	"bellwether/wire"
)

// journalCommand carries out a command of a transcript about a journal.
func (p *player) journalCommand(name string, args []string) {
	j := &p.journal
	switch name {
	case "standalone":
		j.Standalone = true
	case "push":
		kept, first := j.Push(task(args))
		fmt.Fprintf(p.out, "    kept %v, wakes the log writer %v\n", kept, first)
	case "take":
		fmt.Fprintf(p.out, "    anything %v\n", j.Take())
	case "next":
		p.action = j.Next()
		fmt.Fprintf(p.out, "    %v\n", action{p.action})
	case "done":
		p.told(p.action.Answers(nil, zxid(args[0]), nil))
	case "full":
		p.told(j.Full(nil, zxid(args[0]), "no space"))
	case "refuse":
		p.told(j.Refuse(nil, zxid(args[0]), "not in the log"))
	case "reopen":
		j.Reopen()
	case "freed":
		fmt.Fprintf(p.out, "    %d bytes\n", j.Freed())
	default:
		panic(errors.New("no such command: " + name))
	}
}

func zxid(s string) wire.Zxid {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return wire.Zxid(n)
}

// task parses a task from words such as "generation=1 append=1 append=2 fsync size=10".
func task(args []string) (t Task) {
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "generation":
			t.Generation = uint64(n)
		case "accepted":
			t.SaveAccepted = wire.Epoch(n)
		case "truncate":
			t.Truncate = &zab.Truncate{Zxid: wire.Zxid(n)}
		case "rebuild":
			t.Rebuild = true
		case "install":
			t.Install = &zab.Install{Zxid: wire.Zxid(n)}
		case "append":
			t.Append = append(t.Append, &record.Txn{TxnHeader: record.TxnHeader{Zxid: wire.Zxid(n)}})
		case "fsync":
			t.Sync = true
		case "current":
			t.SaveCurrent = wire.Epoch(n)
		case "size":
			t.Size = int(n)
		default:
			panic(errors.New("no such duty: " + a))
		}
	}
	return t
}

// action prints an Action.
type action struct{ Action }

func (a action) String() string {
	var what string
	switch a.Kind {
	case Idle:
		return "idle"
	case SaveAccepted:
		what = fmt.Sprintf("save accepted epoch %d", a.Epoch)
	case Rebuild:
		if a.Truncate != nil {
			what = fmt.Sprintf("truncate behind %d, ", int64(a.Truncate.Zxid))
		}
		what += fmt.Sprintf("rebuilt tree %v", a.Anew)
	case Install:
		what = fmt.Sprintf("install %d", int64(a.Snapshot.Zxid))
	case Append:
		what = "append"
		for _, t := range a.Txns {
			what += fmt.Sprintf(" %d", int64(t.Zxid))
		}
		what += " and fsync"
	case SaveCurrent:
		what = fmt.Sprintf("save current epoch %d", a.Epoch)
	}
	return fmt.Sprintf("%s (generation %d)", what, a.Generation)
}

// told prints the events for the loop.
func (p *player) told(events []replica.Event) {
	for _, e := range events {
		var what string
		var generation uint64
		switch e := e.(type) {
		case replica.Synced:
			what, generation = fmt.Sprintf("durable through %d", int64(e.Zxid)), e.Generation
		case replica.LogFull:
			what, generation = fmt.Sprintf("full behind %d", int64(e.Zxid)), e.Generation
		case replica.Rebuilt:
			fmt.Fprintln(p.out, "    tells: another tree")
			continue
		case replica.Zab:
			switch e := e.Event.(type) {
			case zab.Saved:
				what, generation = fmt.Sprintf("saved accepted %d, current %d", e.Accepted, e.Current), e.Generation
			case zab.Installed:
				what, generation = fmt.Sprintf("installed %d", int64(e.Zxid)), e.Generation
			case zab.Refused:
				what, generation = fmt.Sprintf("refused, the log ends at %d: %s", int64(e.Zxid), e.Why), e.Generation
			}
		}
		fmt.Fprintf(p.out, "    tells: %s (generation %d)\n", what, generation)
	}
}

// TestJournalDoesNotAllocate: pushing, grouping and finishing duties allocates no memory once the queues
// have grown.
func TestJournalDoesNotAllocate(t *testing.T) {
	var j Journal
	one := task([]string{"generation=1", "append=1"})
	cycle := func() {
		for range 8 {
			j.Push(one)
		}
		j.Take()
		if a := j.Next(); len(a.Txns) != 8 {
			t.Fatalf("%d transactions", len(a.Txns))
		}
		if a := j.Next(); a.Kind != Idle {
			t.Fatalf("%v", action{a})
		}
	}
	for range 3 {
		cycle()
	}
	if n := testing.AllocsPerRun(100, cycle); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestIdleJournalKeepsNoTransactions: an idle journal keeps no transaction in memory.
func TestIdleJournalKeepsNoTransactions(t *testing.T) {
	var j Journal
	for range 2 {
		j.Push(task([]string{"generation=1", "append=1", "append=2"}))
		j.Take()
		j.Next()
		j.Next()
	}
	for _, tasks := range [][]Task{j.queued[:cap(j.queued)], j.taken[:cap(j.taken)], j.room[:cap(j.room)]} {
		for i := range tasks {
			if tasks[i].Append != nil {
				t.Error("a task is kept")
			}
		}
	}
	for _, txn := range j.txns[:cap(j.txns)] {
		if txn != nil {
			t.Error("a transaction is kept")
		}
	}
}
