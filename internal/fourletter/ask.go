package fourletter

import (
	"context"
	"io"
	"net"
	"strings"
	"time"
	"unicode"
)

// answerMax is the longest answer that is read, in bytes. The longest is that of elog: 65
// elections with all their votes.
const answerMax = 16 << 20

// Ask sends a word over a connection and returns the answer, which is cut if it is very
// long. It closes the connection. It gives up when ctx ends, and after the timeout.
func Ask(ctx context.Context, conn net.Conn, word string, timeout time.Duration) (string, error) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return "", err
	}
	if ctx.Err() != nil { // ctx ended before the deadline was set
		return "", ctx.Err()
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(conn, answerMax))
	return string(b), err
}

// Clean replaces control characters and characters that a terminal cannot show.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, text)
}

// Clip cuts text that is longer than most bytes.
func Clip(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
