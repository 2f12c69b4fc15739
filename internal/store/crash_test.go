package store

import (
	"errors"
	"fmt"
	"testing"

	"bellwether/wire"
)

// script contains every operation of a server that changes the disk, each in several
// situations. Its steps run in order until one fails.
var script = []struct {
	name string
	do   func(d *driver) error
}{
	{"first start", (*driver).start},
	{"one transaction", func(d *driver) error { return d.commit(1) }},
	{"a batch of many sectors", func(d *driver) error { return d.commit(2, 3, 4, 5, 6) }},
	{"fuzzy snapshot", func(d *driver) error { return d.snapshot(4) }},
	{"roll with nothing open to sync", (*driver).roll},
	{"snapshot between logs", func(d *driver) error { return d.snapshot(6) }},
	{"batch in a new log", func(d *driver) error { return d.commit(7, 8, 9) }},
	{"roll with a batch not synced", func(d *driver) error {
		if err := d.add(10, 11); err != nil {
			return err
		}
		return d.roll()
	}},
	{"third snapshot", func(d *driver) error { return d.snapshot(11) }},
	{"small commits", func(d *driver) error {
		for z := wire.Zxid(12); z < 18; z++ {
			if err := d.commit(z); err != nil {
				return err
			}
		}
		return nil
	}},
	{"fourth snapshot, fuzzy", func(d *driver) error { return d.snapshot(14) }},
	{"purge", func(d *driver) error { _, err := d.s.Purge(3); return err }},
	{"clean stop and start", func(d *driver) error {
		if err := d.s.Close(); err != nil {
			return err
		}
		return d.start()
	}},
	{"more", func(d *driver) error { return d.commit(18, 19, 20, 21) }},
	{"becoming a member", func(d *driver) error { _, err := d.s.Epochs(); return err }},
	{"an epoch", func(d *driver) error { return d.setEpochs(1, 1) }},
	{"first of the epoch", func(d *driver) error { return d.commit(1<<32+1, 1<<32+2) }},
	{"snapshot of what will be cut", func(d *driver) error { return d.snapshot(1<<32 + 1) }},
	{"roll", (*driver).roll},
	{"tail in a new log", func(d *driver) error { return d.commit(1<<32+3, 1<<32+4) }},
	{"truncate over logs and snapshots", func(d *driver) error { return d.truncate(19) }},
	{"the same zxids again, other content", func(d *driver) error { return d.commit(20, 21, 22) }},
	{"truncate inside one log", func(d *driver) error { return d.truncate(21) }},
	{"and again", func(d *driver) error { return d.commit(22, 23, 24, 25) }},
	{"the next epoch written ahead", func(d *driver) error { return d.s.WriteEpochsAhead() }},
	{"a leader's epoch", func(d *driver) error { return d.setEpochs(1, 3) }},
	{"a leader's snapshot", func(d *driver) error { return d.install(3<<32 + 9) }},
	{"its epoch adopted", func(d *driver) error { return d.setEpochs(3, 3) }},
	{"the one after it written ahead", func(d *driver) error { return d.s.WriteEpochsAhead() }},
	{"behind the leader's snapshot", func(d *driver) error { return d.commit(3<<32+10, 3<<32+11) }},
	{"snapshot there", func(d *driver) error { return d.snapshot(3<<32 + 10) }},
	{"a leader's snapshot that goes back", func(d *driver) error { return d.install(3<<32 + 5) }},
	{"and on", func(d *driver) error { return d.commit(3<<32+6, 3<<32+7) }},
	{"snapshots and purge at the end", func(d *driver) error {
		for range 2 {
			if err := d.snapshot(3<<32 + 7); err != nil {
				return err
			}
			if err := d.commit(d.last + 1); err != nil {
				return err
			}
		}
		_, err := d.s.Purge(3)
		return err
	}},
	{"the epoch that was written ahead", func(d *driver) error { return d.setEpochs(4, 4) }},
	{"and again one ahead", func(d *driver) error { return d.s.WriteEpochsAhead() }},
	{"stop", func(d *driver) error { return d.s.Close() }},
}

// runScript runs the steps of script until the planned crash.
func runScript(t *testing.T, d *driver) (step string) {
	t.Helper()
	for _, s := range script {
		if err := s.do(d); errors.Is(err, ErrCrashed) {
			return s.name
		} else if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	return ""
}

// TestCrashAnywhere: the machine crashes at each change that script makes to the disk, in
// several ways. Every later start succeeds without help. It shows a history with
// everything that was acknowledged and without anything that was truncated. That history
// is durable, and the store continues with it.
func TestCrashAnywhere(t *testing.T) {
	for name, o := range map[string]Options{
		"one directory":   {DataDir: "/data", PreallocBytes: 4096},
		"two directories": {DataDir: "/data", LogDir: "/logs", PreallocBytes: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, o)
		})
	}
}

func crashEverywhere(t *testing.T, o Options) {
	whole := newDriver(NewMem(1), o)
	if step := runScript(t, whole); step != "" {
		t.Fatalf("crashed at %s", step)
	}
	for n := 1; n <= whole.m.Steps(); n += apart {
		d := newDriver(NewMem(uint64(n)), o)
		d.m.CrashAt(n)
		step := runScript(t, d)
		if step == "" {
			t.Fatalf("no crash at change %d", n)
		}
		for v := range variants {
			t.Run(fmt.Sprintf("%d/%d", n, v), func(t *testing.T) {
				m := d.m.Clone(uint64(n*variants + v))
				m.Crash(v)
				crashAfter(t, step, d, m, v)
			})
		}
	}
}

// crashAfter checks one crash, and that the state after it survives another crash.
func crashAfter(t *testing.T, step string, d *driver, m *Mem, v int) {
	defer func() {
		if t.Failed() {
			t.Logf("in the step %q", step)
		}
	}()
	interrupted(t, d, m, v)
	next := d.verify(t, m)
	m.Crash(LoseAll)
	next = next.verify(t, m)
	must(t, next.commit(next.last+1, next.last+2))
	m.Crash(v)
	next = next.verify(t, m)
	must(t, next.s.Close())
	clean(t, m, d.opts)
}

// interrupted tests a second crash, at each change that the start after the first crash
// makes.
func interrupted(t *testing.T, d *driver, m *Mem, v int) {
	for n := 1; ; n++ {
		c := m.Clone(uint64(n))
		c.Crash(KeepAll)
		c.CrashAt(n)
		s, err := Open(c, d.opts)
		if err == nil {
			_, err = s.Load(newWorld())
		}
		if err == nil {
			return
		}
		if !errors.Is(err, ErrCrashed) {
			t.Fatalf("start: %v", err)
		}
		c.Crash(v)
		d.verify(t, c)
	}
}

// clean checks that a ZooKeeper server could read the directory: each log has a header
// and ends with zeros only, and no snapshot is incomplete.
func clean(t *testing.T, m *Mem, o Options) {
	t.Helper()
	rep, err := Check(m, o)
	must(t, err)
	for _, log := range rep.Logs {
		if b := read(t, m, log.Path); log.Records == 0 || !allZero(b[log.End:]) {
			t.Errorf("%s: %d records to %d, length %d", log.Path, log.Records, log.End, log.Size)
		}
	}
	for _, s := range rep.Snapshots {
		if !s.Sound {
			t.Errorf("%s is not sound", s.Path)
		}
	}
}
