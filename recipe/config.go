package recipe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"bellwether/wire"
	"bellwether/zk"
)

// Config is a configuration that a leader has announced.
type Config struct {
	// Token is that of the leader who announced it: pass it on with what is
	// done by the configuration.
	Token   wire.Zxid
	Version int32 // of the znode, 0 for the first one
	Data    []byte
}

// configHead is the first line of the znode; the configuration follows as it is.
type configHead struct {
	Token string `json:"token"`
	Bid   string `json:"bid"`
}

// ConfigOptions are the settings of PublishConfig; nil is all defaults.
type ConfigOptions struct {
	ACL zk.ACLs // of the znode made, open to everybody by default
}

// ErrConfigNewer: the configuration that stands is of a later leader.
var ErrConfigNewer = errors.New("a later leader has announced a configuration")

// PublishConfig announces a configuration at path, by who leads: it is
// written only while the handle's bid stands, checked in the same transaction. The
// znode is made where it is missing, its parent is not. A term that is over gives ErrNotLeader. After
// a zk.LostError it may be published again, with the same data.
func PublishConfig(ctx context.Context, h *Handle, path string, data []byte, o *ConfigOptions) error {
	head, err := json.Marshal(configHead{Token: fmt.Sprintf("%#x", int64(h.Token())), Bid: h.Bid()})
	if err != nil {
		return err
	}
	text := append(append(head, '\n'), data...)
	for {
		now, stat, err := h.t.b.c.Get(ctx, path)
		op := zk.SetOp(path, text, stat.Version)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			var opts []zk.CreateOption
			if o != nil && o.ACL != nil {
				opts = append(opts, o.ACL)
			}
			op = zk.CreateOp(path, text, opts...)
		case err != nil:
			return err
		default:
			if c, ok := parseConfig(now, stat); ok && c.Token > h.Token() {
				return ErrConfigNewer
			}
		}
		_, err = h.Do(ctx, op)
		if !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
	}
}

// parseConfig is false for what no leader announced.
func parseConfig(text []byte, stat wire.Stat) (Config, bool) {
	line, data, ok := bytes.Cut(text, []byte("\n"))
	var head configHead
	if !ok || json.Unmarshal(line, &head) != nil {
		return Config{}, false
	}
	token, err := strconv.ParseInt(head.Token, 0, 64)
	if err != nil {
		return Config{}, false
	}
	return Config{Token: wire.Zxid(token), Version: stat.Version, Data: data}, true
}

// WatchConfig yields the configuration at path, once there is one, and each
// later one, until the context ends. Those in quick succession may be seen as one; one of an
// older leader than seen before is left out. A change costs one event and one
// read. The second value is an error that ends it: the context's,
// zk.ErrClosed, or what the server refuses.
func WatchConfig(ctx context.Context, c *zk.Client, path string) iter.Seq2[Config, error] {
	return func(yield func(Config, error) bool) {
		var last Config
		for first := true; ; {
			now, ok, w, err := lookConfig(ctx, c, path)
			switch {
			case isPassing(c, err) && ctx.Err() == nil:
				continue
			case err != nil:
				yield(Config{}, err)
				return
			}
			if ok && now.Token >= last.Token && (first || now.Token != last.Token || now.Version != last.Version) {
				first, last = false, now
				if !yield(now, nil) {
					unwatch(ctx, w)
					return
				}
			}
			if _, err := w.Wait(ctx); ctx.Err() != nil {
				unwatch(ctx, w)
				yield(Config{}, ctx.Err())
				return
			} else if err != nil && !isPassing(c, err) {
				yield(Config{}, err)
				return
			}
		}
	}
}

// lookConfig reads and watches, whether there is a znode or not.
func lookConfig(ctx context.Context, c *zk.Client, path string) (Config, bool, *zk.Watch, error) {
	for {
		data, stat, w, err := c.GetW(ctx, path)
		if err == nil {
			now, ok := parseConfig(data, stat)
			return now, ok, w, nil
		}
		if !errors.Is(err, zk.ErrNoNode) {
			return Config{}, false, nil, err
		}
		_, exists, w, err := c.ExistsW(ctx, path)
		if err != nil || !exists {
			return Config{}, false, w, err
		}
		unwatch(ctx, w) // made in between
	}
}
