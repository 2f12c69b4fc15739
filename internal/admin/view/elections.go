package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"bellwether/internal/admin"
	"bellwether/internal/admin/elog"
	"bellwether/internal/admin/theatre"
	"bellwether/internal/ensemble"
	"bellwether/internal/fourletter"
)

// Elections are the recorded elections of the ensemble, oldest first.
type Elections struct {
	List    []theatre.Election
	Missing []string // servers whose records could not be read, and why
}

// Elections returns what the servers recorded about their elections. It is up to pollEvery
// old.
func (v *View) Elections(ctx context.Context) *Elections {
	return v.elections.get(pollEvery, func() *Elections { return v.pollElections(context.WithoutCancel(ctx)) })
}

func (v *View) pollElections(ctx context.Context) *Elections {
	cfg := v.srv.Config()
	if cfg.Standalone() {
		return &Elections{}
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	records := admin.Elections(v.srv)
	var missing []missingRecord
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, m := range cfg.Ensemble.Members.Servers() {
		if m.ID == cfg.Ensemble.ID {
			continue
		}
		asking.Go(func() {
			found, err := v.recordsOf(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			records = append(records, found...)
			if err != nil {
				missing = append(missing, missingRecord{m.ID, err})
			}
		})
	}
	asking.Wait()
	slices.SortFunc(missing, func(a, b missingRecord) int { return cmp.Compare(a.id, b.id) })
	out := &Elections{List: theatre.Elections(records)}
	for _, m := range missing {
		out.Missing = append(out.Missing, fmt.Sprintf("server %d: %s", m.id, fourletter.Clip(fourletter.Clean(m.err.Error()), fourletter.ValueMax)))
	}
	return out
}

// missingRecord says why the records of a server could not be read.
type missingRecord struct {
	id  ensemble.ServerID
	err error
}

// recordsOf asks another server for its records. It refuses them if they name another server
// than m.
func (v *View) recordsOf(ctx context.Context, m ensemble.Server) ([]elog.Election, error) {
	address := v.clientAddress(m)
	if address == "" {
		return nil, fmt.Errorf("its client address is not known: add it to its server line, as in server.N=host:2888:3888;2181")
	}
	text, err := v.ask(ctx, address, "elog")
	if err != nil {
		return nil, err
	}
	all, err := elog.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Server != m.ID {
			return nil, fmt.Errorf("the server at %s says that it is server %d: correct the client address in the server line", address, all[i].Server)
		}
	}
	return all, nil
}
