// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidekeeper.dev/tidekeeper/internal/nodepool/setting"
)

func TestLongValuesAreRecordedByHash(t *testing.T) {
	long := strings.Repeat("<", 1024)
	s := setting.AnnotationKey("note")
	r := Record{}
	r.Add("p", s, long)
	text := r.String()
	if len(text) > 100 {
		t.Errorf("the record of one value has %d bytes: %s", len(text), text)
	}
	back, err := Parse(text)
	if err != nil || !back.Owns(s, long) || back.Owns(s, long+"<") {
		t.Errorf("what is read back of %s is %v, %v", text, back, err)
	}
	// As versions before wrote it.
	old, err := Parse(`{"p":{"annotations":{"note":"` + strings.Repeat(`\u003c`, 1024) + `"}}}`)
	if diff := cmp.Diff(r, old); err != nil || diff != "" {
		t.Errorf("the record with the whole value is another (-want +got):\n%s%v", diff, err)
	}
	// Nobody can pass a short value for the long one whose hash it is.
	if fake := string(DigestOf(s, long)); r.Owns(s, fake) {
		t.Error("a value that looks like the hash is taken for what was hashed")
	}
}
