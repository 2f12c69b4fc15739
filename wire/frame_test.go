package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"bellwether/internal/wiretest"
	"bellwether/wire"
)

// readers are different ways in which the bytes of a stream may arrive.
var readers = map[string]func([]byte) io.Reader{
	"at once":      func(b []byte) io.Reader { return bytes.NewReader(b) },
	"byte by byte": func(b []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) },
	"buffered":     func(b []byte) io.Reader { return bufio.NewReader(bytes.NewReader(b)) },
	"small buffer": func(b []byte) io.Reader { return bufio.NewReaderSize(iotest.OneByteReader(bytes.NewReader(b)), 16) },
	"end with data": func(b []byte) io.Reader {
		return iotest.DataErrReader(bytes.NewReader(b))
	},
}

// TestFramesArriveInAnyPieces: the frames are the same in whatever pieces the stream arrives. The end of
// the stream between two frames is io.EOF.
func TestFramesArriveInAnyPieces(t *testing.T) {
	payloads := []string{"", "a", strings.Repeat("b", wiretest.ReadStep), strings.Repeat("c", 5*wiretest.ReadStep+1), "d"}
	var stream []byte
	for _, p := range payloads {
		var mark int
		stream, mark = wire.BeginFrame(stream)
		stream = wire.EndFrame(append(stream, p...), mark)
	}
	for name, reader := range readers {
		for _, room := range []int{0, 3, 4, wiretest.ReadStep, 10 * wiretest.ReadStep} {
			r := reader(stream)
			for i, p := range payloads {
				got, err := wire.ReadFrame(r, make([]byte, room), wire.FrameMax)
				if err != nil || string(got) != p || got == nil {
					t.Errorf("%s, room %d, frame %d: %d bytes, error %v, want %d", name, room, i, len(got), err, len(p))
				}
			}
			if _, err := wire.ReadFrame(r, nil, wire.FrameMax); err != io.EOF {
				t.Errorf("%s: error %v at the end, want EOF", name, err)
			}
		}
	}
}

// TestBadFramesAreRefused: a frame is refused because of its length, or because the stream ends within
// it.
func TestBadFramesAreRefused(t *testing.T) {
	tooLong := func(n int) error { return &wire.FrameError{Len: n, Max: 8} }
	for _, tt := range []struct {
		name, stream string
		want         error
	}{
		{"nothing", "", io.EOF},
		{"one byte of a length", "\x00", io.ErrUnexpectedEOF},
		{"three bytes of a length", "\x00\x00\x00", io.ErrUnexpectedEOF},
		{"a length alone", "\x00\x00\x00\x08", io.ErrUnexpectedEOF},
		{"a payload without its last byte", "\x00\x00\x00\x081234567", io.ErrUnexpectedEOF},
		{"one byte too long", "\x00\x00\x00\x09123456789", tooLong(9)},
		{"the longest there is", "\x7f\xff\xff\xff", tooLong(1<<31 - 1)},
		{"minus one", "\xff\xff\xff\xff", tooLong(-1)},
		{"the most negative", "\x80\x00\x00\x00", tooLong(-1 << 31)},
		{"a four-letter word", "ruok", tooLong(0x72756f6b)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, reader := range readers {
				got, err := wire.ReadFrame(reader([]byte(tt.stream)), nil, 8)
				var bad, want *wire.FrameError
				if errors.As(tt.want, &want) {
					if !errors.As(err, &bad) || *bad != *want {
						t.Errorf("%s: error %v, want %v", name, err, tt.want)
					}
				} else if err != tt.want {
					t.Errorf("%s: error %v, want %v", name, err, tt.want)
				}
				if got != nil {
					t.Errorf("%s: payload %q of a bad frame", name, got)
				}
			}
		})
	}
}

// TestFrameErrorSaysTheLimit: the error for a frame that is too large names the key that raises the
// limit.
func TestFrameErrorSaysTheLimit(t *testing.T) {
	const want = "frame of 2000000 bytes, at most 1048575 are accepted (jute.maxbuffer)"
	if got := (&wire.FrameError{Len: 2000000, Max: wire.FrameMax}).Error(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestReadErrorsPassThrough: the error of a failed connection is returned as it is, and not as an error
// of the input.
func TestReadErrorsPassThrough(t *testing.T) {
	broken := errors.New("broken")
	for _, sent := range []string{"", "\x00\x00", "\x00\x00\x00\x04ab"} {
		r := io.MultiReader(strings.NewReader(sent), iotest.ErrReader(broken))
		for name, r := range map[string]io.Reader{"plain": r, "buffered": bufio.NewReader(r)} {
			if name == "buffered" {
				r = bufio.NewReader(io.MultiReader(strings.NewReader(sent), iotest.ErrReader(broken)))
			}
			if _, err := wire.ReadFrame(r, nil, 8); !errors.Is(err, broken) {
				t.Errorf("%s, behind %q: error %v, want %v", name, sent, err, broken)
			}
		}
	}
}

// TestALengthAloneCostsNothing: memory is allocated only for bytes that have arrived, not for the
// announced length.
func TestALengthAloneCostsNothing(t *testing.T) {
	head := []byte{0x00, 0x0f, 0xff, 0xff} // FrameMax
	for _, sent := range []int{0, 1, wiretest.ReadStep, 4 * wiretest.ReadStep, 100000} {
		stream := append(bytes.Clone(head), make([]byte, sent)...)
		wiretest.CheckAllocated(t, 4*sent+2*wiretest.ReadStep, func() { wire.ReadFrame(bytes.NewReader(stream), nil, wire.FrameMax) })
	}
}

// TestReadingIntoOwnMemoryAllocatesNothing: a reader of a buffered connection that reuses the memory of
// its last frame allocates nothing.
func TestReadingIntoOwnMemoryAllocatesNothing(t *testing.T) {
	stream := wire.AppendFrame(nil, &wire.RequestHeader{}, &wire.SetDataRequest{Path: "/a", Data: make([]byte, 1000)})
	source := bytes.NewReader(stream)
	r := bufio.NewReader(source)
	buf := make([]byte, 0, len(stream))
	if n := testing.AllocsPerRun(100, func() {
		source.Reset(stream)
		r.Reset(source)
		if _, err := wire.ReadFrame(r, buf, wire.FrameMax); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestFrameThatCannotBeWrittenPanics checks a mistake of the caller: a frame so long that its length
// would be read as a negative number.
func TestFrameThatCannotBeWrittenPanics(t *testing.T) {
	n := math.MaxInt32
	if got := wire.FrameLen(n); got != math.MaxInt32 {
		t.Errorf("%d, want %d", got, n)
	}
	defer func() {
		if recover() == nil {
			t.Error("a frame of 2^31 bytes was accepted")
		}
	}()
	wire.FrameLen(n + 1)
}
