package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// brief is a log handler for people who watch several servers in one terminal. It prints the time of day, the
// level if it is not INFO, the message, and then each attribute as key=value.
type brief struct {
	out   *briefOut
	attrs slog.Handler // writes the attributes as key=value to out.buf
}

type briefOut struct {
	mu  sync.Mutex
	w   io.Writer
	buf *bytes.Buffer // guarded by mu
}

func newBrief(w io.Writer, level slog.Leveler) brief {
	var b bytes.Buffer
	keep := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}
	return brief{&briefOut{w: w, buf: &b}, slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level, ReplaceAttr: keep})}
}

func (b brief) Enabled(ctx context.Context, l slog.Level) bool { return b.attrs.Enabled(ctx, l) }

func (b brief) WithAttrs(a []slog.Attr) slog.Handler { return brief{b.out, b.attrs.WithAttrs(a)} }

func (b brief) WithGroup(name string) slog.Handler { return brief{b.out, b.attrs.WithGroup(name)} }

func (b brief) Handle(ctx context.Context, r slog.Record) error {
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	b.out.buf.Reset()
	if err := b.attrs.Handle(ctx, r); err != nil {
		return err
	}
	level := ""
	if r.Level != slog.LevelInfo {
		level = r.Level.String() + " "
	}
	space := " "
	if b.out.buf.Len() == 1 { // the record has no attributes
		space = ""
	}
	_, err := fmt.Fprintf(b.out.w, "%s %s%s%s%s", r.Time.Format("15:04:05.000"), level, r.Message, space, b.out.buf)
	return err
}
