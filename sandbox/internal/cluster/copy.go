// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// copyAll copies a file, or a directory with all its contents.
func copyAll(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return copyFile(from, to, info)
	}
	if err := os.Mkdir(to, info.Mode().Perm()); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := copyAll(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file without its holes: etcd allocates 64 MiB for a log of which little is written.
func copyFile(from, to string, info os.FileInfo) error {
	source, err := os.Open(filepath.Clean(from))
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(filepath.Clean(to), os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	err = errors.Join(target.Truncate(info.Size()), copyData(source, target))
	return errors.Join(err, target.Close())
}

// copyData copies each part of a file that is not a hole.
func copyData(source, target *os.File) error {
	for end := int64(0); ; {
		begin, err := source.Seek(end, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // There is no data after this position.
		}
		if err == nil {
			end, err = source.Seek(begin, unix.SEEK_HOLE)
		}
		if err == nil {
			_, err = source.Seek(begin, io.SeekStart)
		}
		if err == nil {
			_, err = target.Seek(begin, io.SeekStart)
		}
		if err == nil {
			_, err = io.CopyN(target, source, end-begin)
		}
		if err != nil {
			return err
		}
	}
}
