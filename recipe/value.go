package recipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bellwether/internal/claim"
	"bellwether/internal/claim/registry"
	"bellwether/internal/claim/value"
	"bellwether/zk"
)

// Value is the data of a znode that clients change by compare and set. It carries out each change
// once, even if replies are lost: each change also sets an ephemeral child of the znode, the mark, in the
// same transaction. After a lost reply the mark tells whether the change was carried out. Its methods may be
// called from any goroutine.
type Value struct {
	b   agent
	cfg value.ChangeConfig

	turn turn // lets one change run at a time; guards mark
	mark value.Mark
}

// turn lets one goroutine pass at a time. It is a mutex whose wait ends with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) give() { <-t }

// ValueOptions are the settings of a Value. A nil pointer means all defaults.
type ValueOptions struct {
	// Initial is the data of the znode before the first change. The first change creates the znode.
	// Until then Get returns Initial.
	Initial []byte
	// ACL is given to each znode that the Value creates. By default everybody may do everything.
	ACL zk.ACLs

	// Logger and Observer receive reports as described at ElectionOptions.
	Logger   *slog.Logger
	Observer func(Observation)
}

// NewValue prepares a Value at path. The caller still owns the client.
func NewValue(c *zk.Client, path string, o *ValueOptions) (*Value, error) {
	opt := optionsOr(o)
	v := &Value{b: newAgent(c, "value", path, opt.ACL, opt.Logger, opt.Observer), turn: newTurn()}
	v.cfg = value.ChangeConfig{Path: path, Initial: bytes.Clone(opt.Initial), Mark: claim.Join(path, "_m_"+nonce())}
	return v, v.b.validate()
}

// Get returns the value.
func (v *Value) Get(ctx context.Context) ([]byte, error) {
	data, _, err := v.b.c.Get(ctx, v.cfg.Path)
	if errors.Is(err, zk.ErrNoNode) {
		return bytes.Clone(v.cfg.Initial), nil
	}
	return data, err
}

// Update calls change with the value and replaces the value by the result. It tries again if another client
// changed the value first, so change may be called many times. An error of change ends Update. A
// *zk.UnknownOutcomeError says that a change was sent, that its reply was lost, and
// that the context or the session ended before the outcome was known: the change was
// carried out once or not at all. After every other error nothing was changed.
func (v *Value) Update(ctx context.Context, change func(old []byte) ([]byte, error)) ([]byte, error) {
	if err := v.turn.take(ctx); err != nil {
		return nil, err
	}
	defer v.turn.give()
	m := value.NewChange(v.cfg, v.mark)
	d := v.b.newDriver(m)
	var refused error
	d.afterStep = func(ctx context.Context, _ claim.Event) {
		old, awaited := m.Old()
		if !awaited {
			return
		}
		var data []byte
		if data, refused = change(old); refused != nil {
			d.step(ctx, claim.Resign{})
		} else {
			d.step(ctx, value.Propose{Data: data})
		}
	}
	start := time.Now()
	err := v.outcome(ctx, m, d.conclude(ctx, "change", v.cfg.Path, m))
	v.mark = m.Mark()
	data := m.Value()
	if refused != nil {
		data, err = nil, refused
	}
	v.b.observed("change", v.cfg.Path, start, err)
	return data, err
}

// outcome returns the error of a change that has ended. It is an *zk.UnknownOutcomeError if the outcome is unknown.
func (v *Value) outcome(ctx context.Context, m *value.Change, err error) error {
	switch {
	case err == nil, !m.Over() && m.Doubt() == 0:
		return err
	case !m.Over():
		return unknownOutcome(ctx, "change", v.cfg.Path, m.Doubt(), nil)
	case errors.Is(err, value.ErrVersion):
		return fmt.Errorf("value %s: %w", v.cfg.Path, err)
	}
	return err
}

// CompareAndSet replaces the value by data if it equals old, and reports whether it did.
func (v *Value) CompareAndSet(ctx context.Context, old, data []byte) (bool, error) {
	_, err := v.Update(ctx, func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, old) {
			return nil, errOther
		}
		return data, nil
	})
	if errors.Is(err, errOther) {
		return false, nil
	}
	return err == nil, err
}

var errOther = errors.New("the value is not the expected one")

// Close removes the mark, which otherwise stays until the session ends. Close returns an
// error if the context ends, the client has ended, or a server refuses a request. It may
// then be called again.
func (v *Value) Close(ctx context.Context) error {
	if err := v.turn.take(ctx); err != nil {
		return err
	}
	defer v.turn.give()
	if v.mark.Session == 0 {
		return nil
	}
	m := registry.NewRemoval(v.cfg.Mark, v.mark.Session)
	err := v.b.newDriver(m).conclude(ctx, "close", v.cfg.Path, m)
	if err == nil {
		v.mark.Session = 0
	}
	return err
}
