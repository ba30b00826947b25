// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tidekeeper.dev/tidekeeper/internal/dashboard"
)

// writeHeader creates a file with the HTTP header that authenticates programs, and returns the
// token in the header. If file is "", it creates no file and returns no token. It fails if the file
// exists, because other users may be able to read an existing file. The function remove deletes the
// file.
func writeHeader(file string) (token string, remove func(), err error) {
	if file == "" {
		return "", func() {}, nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", nil, fmt.Errorf("--header-file %s: this file exists: name a new one", file)
	}
	if err != nil {
		return "", nil, fmt.Errorf("--header-file: %w", err)
	}
	remove = func() { _ = os.Remove(file) }
	token = dashboard.NewToken()
	_, err = fmt.Fprintf(f, "Authorization: Bearer %s\n", token)
	if err = errors.Join(err, f.Close()); err != nil {
		remove()
		return "", nil, fmt.Errorf("--header-file: %w", err)
	}
	return token, remove, nil
}
