package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path"
	"testing"
	"unicode/utf8"

	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// seedRecords yields every record of the golden files with its bytes.
func seedRecords(f *testing.F, add func(wire.Record, []byte)) {
	for _, v := range clientVectors(f) {
		raw := wiretest.Unhex(f, v.Hex)
		switch v.Kind {
		case "raw":
		case "ConnectRequest":
			add(new(wire.ConnectRequest), raw[4:])
		case "ConnectResponse":
			add(new(wire.ConnectResponse), raw[4:])
		default:
			c := wire.Decoder(raw[4:])
			header, _ := decodeHeader(&c, v)
			add(header[0], raw[4:])
			if body := newBody(v, header[0]); body != nil {
				add(body, c.Rest())
			}
		}
	}
}

// FuzzReadFrame reads any input as a stream of frames that arrives in pieces. The frames that are read
// are the input, and an announced length allocates no memory before its bytes arrive.
func FuzzReadFrame(f *testing.F) {
	var all []byte
	for _, v := range clientVectors(f) {
		raw := wiretest.Unhex(f, v.Hex)
		f.Add(raw, uint16(0))
		all = append(all, raw...)
	}
	f.Add(all, uint16(100))
	f.Fuzz(func(t *testing.T, b []byte, room uint16) {
		var frames [][]byte
		var err error
		frameBytes := len(b)/wire.FrameHeaderLen*24*2 + int(room) + 2*wiretest.ReadStep // the slices that hold the frames, the reader's own memory, and the last frame
		wiretest.CheckAllocated(t, wiretest.AllocBudget(len(b))+frameBytes, func() { frames, err = readFrames(b, int(room)) })
		var out []byte
		for _, frame := range frames {
			var mark int
			out, mark = wire.BeginFrame(out)
			out = wire.EndFrame(append(out, frame...), mark)
		}
		if !bytes.HasPrefix(b, out) {
			t.Errorf("read\n%x from\n%x", out, b)
		}
		var bad *wire.FrameError
		switch {
		case err == io.EOF && len(out) == len(b), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &bad):
		default:
			t.Errorf("error %v behind %d of %d bytes", err, len(out), len(b))
		}
	})
}

// readFrames reads frames up to the first error. It reads the first frame into memory of its own.
func readFrames(b []byte, room int) (frames [][]byte, err error) {
	r := bufio.NewReaderSize(bytes.NewReader(b), 16)
	buf := make([]byte, room)
	for {
		frame, err := wire.ReadFrame(r, buf, wire.FrameMax)
		if err != nil {
			return frames, err
		}
		frames, buf = append(frames, frame), nil
	}
}

// FuzzValidPath: a path that is accepted is UTF-8, is absolute, and splits into names.
func FuzzValidPath(f *testing.F) {
	for _, s := range []string{"/", "/a/", "/a//b", "/a/.", "", "a", "/\xff", "/é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if wire.ValidPath(s) && (!utf8.ValidString(s) || !path.IsAbs(s) || path.Clean(s) != s) {
			t.Errorf("%q is taken for valid", s)
		}
	})
}
