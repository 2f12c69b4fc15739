package server

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// chunks is a reader that returns as much at a time as it is told to.
type chunks struct {
	data  []byte
	sizes func() int
}

func (c *chunks) Read(b []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := min(len(b), len(c.data), max(c.sizes(), 1))
	copy(b, c.data[:n])
	c.data = c.data[n:]
	return n, nil
}

func testInput(src io.Reader, max int, b *budget) *input {
	return &input{src: src, max: max, budget: b, claim: b.claim, clock: func() int64 { return 1 }}
}

// TestFramesComeOutWhole: however the network splits them, frames are returned complete
// and in order, and the buffer that is kept afterwards is small.
func TestFramesComeOutWhole(t *testing.T) {
	const longest = 300_000
	noise := make([]byte, 2*longest)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		lens := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(400, 600),
			rapid.IntRange(inputBusy-10, inputBusy+10), rapid.IntRange(0, longest)), 1, 20).Draw(t, "lengths")
		var want [][]byte
		var data []byte
		for _, n := range lens {
			from := rng.IntN(longest)
			b := noise[from : from+n : from+n]
			want = append(want, b)
			data = append(data, frameOf(b)...)
		}
		most := rapid.SampledFrom([]int{1, 7, 1000, 1 << 20}).Draw(t, "chunk")
		if most == 1 && len(data) > 20_000 {
			most = 100
		}
		b := testBudget()
		in := testInput(&chunks{data, func() int { return 1 + rng.IntN(most) }}, longest, b)
		for len(want) > 0 {
			if err := in.read(); err != nil {
				t.Fatalf("%v with %d frames to come", err, len(want))
			}
			for {
				f, err := in.frame()
				if err != nil {
					t.Fatal(err)
				}
				if f == nil {
					break
				}
				if !bytes.Equal(f, want[0]) {
					t.Fatalf("frame of %d bytes, want %d", len(f), len(want[0]))
				}
				want = want[1:]
			}
		}
		if in.read() != io.EOF {
			t.Fatal("there is more than was sent")
		}
		if in.read() != io.EOF || cap(in.buf) != inputIdle {
			t.Fatalf("%d bytes are kept", cap(in.buf))
		}
		in.release()
		if n := b.bytes.Load(); n != 0 {
			t.Fatalf("%d bytes are still counted", n)
		}
	})
}

// TestLengthAloneAllocatesNothing: announcing a large length uses no memory: the buffer
// grows with the bytes that arrive.
func TestLengthAloneAllocatesNothing(t *testing.T) {
	head := binary.BigEndian.AppendUint32(nil, 900_000)
	in := testInput(&chunks{append(head, make([]byte, 1000)...), func() int { return 10 }}, 1<<20, testBudget())
	for in.read() == nil {
		if f, err := in.frame(); f != nil || err != nil {
			t.Fatal(f, err)
		}
	}
	if cap(in.buf) > inputBusy {
		t.Errorf("1000 bytes of a frame take a buffer of %d", cap(in.buf))
	}
}

// TestInputBuffersAreBounded: while memory is short an input gets a smaller buffer, and
// frames are still returned complete.
func TestInputBuffersAreBounded(t *testing.T) {
	var b budget
	b.limit.Store(3 * inputBusy)
	many := bytes.Repeat(frameOf(make([]byte, 100)), 3000)
	read := func() *input {
		in := testInput(&chunks{many, func() int { return 1 << 20 }}, 1<<20, &b)
		frames := 0
		for in.read() == nil {
			for f, err := in.frame(); f != nil; f, err = in.frame() {
				if err != nil {
					t.Fatal(err)
				}
				if frames++; frames == 500 {
					return in
				}
			}
		}
		t.Fatalf("%d frames", frames)
		return nil
	}
	first, second := read(), read()
	if len(first.buf) != inputBusy || len(second.buf) != inputSome {
		t.Errorf("buffers of %d and %d bytes", len(first.buf), len(second.buf))
	}
	first.release()
	if third := read(); len(third.buf) != inputBusy {
		t.Errorf("a buffer of %d bytes after one was returned", len(third.buf))
	}
}
