// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"compress/gzip"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/version"
)

// magic is the beginning of an uncompressed snapshot.
const magic = "tidekeeper-sandbox-snapshot-1"

// Save writes the snapshot to a file that only the current user can read, because it contains
// Secrets. An existing file is replaced only once the new file is complete.
func (s *Snapshot) Save(path string) (err error) {
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		if _, err := Load(path); err != nil {
			return fmt.Errorf("%s is there already and is not a snapshot: give another name, or remove it", path)
		}
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("save the snapshot: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
			err = fmt.Errorf("save the snapshot: %w", err)
		}
	}()
	// The fastest compression level takes only a third of the default level's time, and the file is
	// hardly larger.
	pack, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
	if err != nil {
		return errors.Join(err, file.Close())
	}
	encoder := gob.NewEncoder(pack)
	if err := errors.Join(encoder.Encode(magic), encoder.Encode(s), pack.Close(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// Load reads a snapshot from a file. It returns an error if the file is not a snapshot or is
// incomplete.
func Load(path string) (*Snapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot: %w", err)
	}
	defer file.Close()
	pack, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s is not a snapshot, as 'sandbox snapshot save' writes them", path)
	}
	decoder := gob.NewDecoder(pack)
	var begin string
	if err := decoder.Decode(&begin); err != nil || begin != magic {
		return nil, fmt.Errorf("%s is not a snapshot, as 'sandbox snapshot save' writes them", path)
	}
	s := &Snapshot{}
	err = decoder.Decode(s)
	if err == nil {
		// Read to the end of the file, so that the gzip reader verifies the checksum.
		_, err = io.Copy(io.Discard, pack)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): take the snapshot again", path, err)
	}
	return s, nil
}

// Fits returns an error if a control plane of the given version may be unable to read the
// snapshot's objects. A control plane can read objects that its own or an earlier release has
// written.
func (s *Snapshot) Fits(kubernetes string) error {
	mine, err := version.ParseSemantic(kubernetes)
	if err != nil {
		return nil //nolint:nilerr // An unknown version is accepted.
	}
	theirs, err := version.ParseSemantic(s.Kubernetes)
	if err != nil || theirs.Major() < mine.Major() || theirs.Major() == mine.Major() && theirs.Minor() <= mine.Minor() {
		return nil //nolint:nilerr // An unknown version is accepted.
	}
	return fmt.Errorf("the snapshot was taken of Kubernetes %s, and this sandbox is %s, which may not know its objects: restore it in a sandbox of that version", s.Kubernetes, kubernetes)
}
