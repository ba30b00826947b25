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
		t.Errorf("Parse(%s) = %v, %v", text, back, err)
	}
	// Earlier versions stored long values in full.
	old, err := Parse(`{"p":{"annotations":{"note":"` + strings.Repeat(`\u003c`, 1024) + `"}}}`)
	if diff := cmp.Diff(r, old); err != nil || diff != "" {
		t.Errorf("the record with the whole value differs (-want +got):\n%s%v", diff, err)
	}
	// A short value that looks like a hash must not be mistaken for the long value with that hash.
	if fake := string(DigestOf(s, long)); r.Owns(s, fake) {
		t.Error("a value that looks like a hash counts as the hashed value")
	}
}
