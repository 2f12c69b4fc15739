package page

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"bellwether/zk"
)

var screenshots = flag.String("screenshots", "", "write the screenshots of the documentation into this folder, instead of only making them")

// TestScreenshots makes the screenshots of the documentation: an ensemble of three with an election, a lock and a
// herd. make screenshots writes them to docs/images.
func TestScreenshots(t *testing.T) {
	all := servers(t)
	leads, follows := leader(t, all)
	furnish(t, leads, follows)
	b := browser(t)
	for _, shot := range []struct {
		name, path, theme, expect string
		height                    int64
	}{
		{"overview", "/", "light", "0x", 620},
		{"tree", "/tree?path=/shop/config", "dark", "timeout", 900},
		{"recipes", "/recipes?path=/shop", "light", "leads", 800},
		{"watches", "/watches", "light", "Herd:", 900},
	} {
		b.open(leads, shot.path)
		b.follow("form.theme button[value=" + shot.theme + "]")
		b.shows(shot.expect)
		b.do("wait for the stream and the servers", poll(`!document.querySelector("[data-live]") || document.querySelector("#link.live") !== null`))
		b.do("the size of the picture", chromedp.EmulateViewport(1200, shot.height))
		raw, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		b.do("the usual size", chromedp.ResetViewport())
		small := compressed(t, raw, 1200, int(shot.height))
		t.Logf("%s.png has %d bytes", shot.name, len(small))
		dir := *screenshots
		if dir == "" {
			dir = t.TempDir()
		}
		if err := os.WriteFile(filepath.Join(dir, shot.name+".png"), small, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// furnish fills the tree with what the screenshots show.
func furnish(t *testing.T, leads, follows *member) {
	t.Helper()
	zc := client(t, follows)
	for _, path := range []string{"/shop", "/shop/config", "/shop/config/limits", "/shop/config/routes", "/shop/lock"} {
		if _, _, err := zc.Create(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := zc.Set(t.Context(), "/shop/config", []byte("{\n  \"timeout\": \"5s\",\n  \"regions\": [\"eu-north\", \"us-east\"]\n}\n"), zk.AnyVersion); err != nil {
		t.Fatal(err)
	}
	<-candidatesAt(t, leads, "/shop/scheduler", 3)
	for i := range 2 {
		name := fmt.Sprintf("/shop/lock/_c_%08d-1111-4111-8111-111111111111-lock-", i)
		if _, _, err := client(t, leads).Create(t.Context(), name, fmt.Appendf(nil, "backup-%d", i+1), zk.Ephemeral, zk.Sequential); err != nil {
			t.Fatal(err)
		}
	}
	for range 14 {
		if _, _, _, err := client(t, leads).GetW(t.Context(), "/shop/config"); err != nil {
			t.Fatal(err)
		}
	}
	for i, routes := range []string{"a", "b"} {
		w := client(t, leads)
		for range 12 {
			if _, _, _, err := client(t, leads).GetW(t.Context(), "/shop/config/routes"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Set(context.Background(), "/shop/config/routes", []byte(routes), int32(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// compressed returns a picture in as few bytes as PNG allows, with a palette if it has few colours.
func compressed(t *testing.T, raw []byte, width, height int) []byte {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds().Size(); got != image.Pt(width, height) {
		t.Fatalf("the picture is %v, want %d by %d", got, width, height)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, paletted(img)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// paletted returns a picture with at most 256 colours, each of which is the one of the picture or very near to it.
func paletted(img image.Image) image.Image {
	bounds := img.Bounds()
	for shift := range 5 { // the lowest bits of each colour that are dropped
		out := image.NewPaletted(bounds, nil)
		index := map[color.RGBA]uint8{}
		if fill(out, img, index, uint8(0xff<<shift)) {
			return out
		}
	}
	return img
}

// fill copies a picture. It returns false if there are too many colours.
func fill(out *image.Paletted, img image.Image, index map[color.RGBA]uint8, mask uint8) bool {
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := img.At(x, y).RGBA()
			c := color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(bl >> 8), 0xff}
			key := color.RGBA{c.R & mask, c.G & mask, c.B & mask, 0xff}
			i, known := index[key]
			if !known {
				if len(out.Palette) == 256 {
					return false
				}
				i = uint8(len(out.Palette))
				index[key], out.Palette = i, append(out.Palette, c)
			}
			out.SetColorIndex(x, y, i)
		}
	}
	return true
}
