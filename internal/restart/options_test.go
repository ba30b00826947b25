// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"testing"

	"tidekeeper.dev/tidekeeper/internal/options/optionstest"
)

func TestFlagsCoverOptions(t *testing.T) {
	o := &Options{}
	optionstest.Cover(t, o, o.group())
}
