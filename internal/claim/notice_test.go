package claim

import (
	"testing"

	"pgregory.net/rapid"

	"bellwether/wire"
)

// TestNoticeRoundTrip checks that ParseNotice reads what Encode writes.
func TestNoticeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Notice{rapid.String().Draw(t, "id"), "x-n_0000000001", wire.Zxid(rapid.Int64Min(1).Draw(t, "token"))}
		got, err := ParseNotice(n.Encode())
		if err != nil || got != n {
			t.Fatalf("%s: %+v, %v", n.Encode(), got, err)
		}
	})
}

func TestNoticeText(t *testing.T) {
	want := `{"id":"host-a","bid":"b-n_0000000002","token":"0x500000001"}`
	if got := string(Notice{"host-a", "b-n_0000000002", 0x500000001}.Encode()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestForeignNotices checks that ParseNotice rejects data of other programs.
func TestForeignNotices(t *testing.T) {
	for _, s := range []string{"", "host-a", "{}", `{"id":"a","bid":"","token":"0x1"}`, `{"id":"a","bid":"a/b","token":"0x1"}`,
		`{"id":"a","bid":"b","token":"1"}`, `{"id":"a","bid":"b","token":"0x0"}`, `{"id":"a","bid":"b","token":"0x-1"}`,
		`{"id":"a","bid":"b","token":7}`, `[1]`, string(make([]byte, noticeMax+1))} {
		if n, err := ParseNotice([]byte(s)); err == nil {
			t.Errorf("%.60q parsed as %+v", s, n)
		}
	}
}

func FuzzParseNotice(f *testing.F) {
	f.Add([]byte(`{"id":"a","bid":"b","token":"0x1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := ParseNotice(data)
		if err != nil {
			return
		}
		if again, err := ParseNotice(n.Encode()); err != nil || again != n {
			t.Fatalf("%q: %+v became %+v, %v", data, n, again, err)
		}
	})
}
