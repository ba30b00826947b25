// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// serviceAccountDir is the directory with the ServiceAccount's files in every container.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// mount creates directories that only the program sees. They are stored in memory, and disappear
// when the last process in the mount namespace exits.
func mount(dirs ...string) error {
	// With slave propagation, later mounts on the host appear in this namespace, but mounts in this
	// namespace do not appear on the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return notPermitted(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	// Hide ~/.kube, because libraries look for a kubeconfig there before they try the in-cluster
	// configuration.
	if home, err := os.UserHomeDir(); err == nil {
		kube := filepath.Join(home, ".kube")
		if _, err := os.Stat(kube); err == nil {
			dirs = append(dirs, kube)
		}
	}
	for _, dir := range dirs {
		if err := MakePrivate(dir); err != nil {
			return fmt.Errorf("mount %s for the program: %w", dir, err)
		}
	}
	// Change to the working directory again. If a mount now covers one of its parent directories,
	// the process would otherwise stay in the covered directory.
	return os.Chdir(wd)
}

// MakePrivate creates an empty directory that only this process and its children see. It creates no
// directory on the host: if the path does not exist there, it covers the nearest existing parent
// with a new directory that has the same entries.
func MakePrivate(dir string) error {
	existing, rest, err := split(dir)
	if err != nil {
		return err
	}
	if rest == "" {
		return unix.Mount("tmpfs", existing, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755")
	}
	if err := cover(existing); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Join(existing, rest), 0o755)
}

// split returns the part of a path that exists, without symbolic links, and the remaining part.
func split(path string) (existing, rest string, _ error) {
	if !filepath.IsAbs(path) {
		return "", "", errors.New("want an absolute path")
	}
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		existing, err := filepath.EvalSymlinks(dir)
		if err == nil {
			return existing, strings.TrimPrefix(strings.TrimPrefix(filepath.Clean(path), dir), "/"), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
	}
}

// cover mounts a new directory over an existing directory. The entries of the existing directory
// remain accessible and writable at the same paths.
func cover(dir string) error {
	if dir == "/" {
		return errors.New("a directory of that name directly below / must exist")
	}
	old, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer old.Close()
	info, err := old.Stat()
	if err != nil {
		return err
	}
	entries, err := old.ReadDir(-1)
	if err != nil {
		return err
	}
	mode := info.Sys().(*syscall.Stat_t).Mode & 0o7777
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=%o", mode)); err != nil {
		return err
	}
	for _, entry := range entries {
		// The file descriptor still refers to the directory below the mount.
		source := fmt.Sprintf("/proc/self/fd/%d/%s", old.Fd(), entry.Name())
		err := show(source, filepath.Join(dir, entry.Name()), entry)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // The entry may have been removed after ReadDir.
			return err
		}
	}
	return nil
}

// show makes an entry of a covered directory, `source`, visible at its old path, `target`.
func show(source, target string, entry fs.DirEntry) error {
	var err error
	switch {
	case entry.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(source)
		if err != nil {
			return err
		}
		return os.Symlink(link, target)
	case entry.IsDir():
		err = os.Mkdir(target, 0o700)
	default:
		err = os.WriteFile(target, nil, 0o600)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return errors.Join(err, os.Remove(target))
	}
	return nil
}

// dropCapabilities drops the capabilities that were needed for mounting, so that the program does
// not inherit them.
func dropCapabilities() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}
