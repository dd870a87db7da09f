// What the disk is asked for: that bytes and names are on it, and that one process at a time
// changes a folder.
#pragma once

#include <string>

namespace fairlead {

// Waits until what was written to a file or folder of ours is on the disk. Nothing happens where the
// file system has no such thing. Throws Error(kIo) naming `shown_as`.
void sync_path(const std::string& path, const std::string& shown_as, const std::string& function);

// The same with the names in a folder of the user's, which a link may lead to.
void sync_names(const std::string& folder, const std::string& shown_as,
                const std::string& function);

// All files and folders below `folder`, but for second names of files, and the folder itself.
void sync_tree(const std::string& folder, const std::string& shown_as, const std::string& function);

// A lock on an existing folder while this lives, against other processes and threads that take it.
// The system gives it back when the process dies, and nothing is written for it. Whoever holds it
// does so for a few renames: after ten seconds something is wrong with them, and the lock is not
// held.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();
  // False also where the file system has no locks: what is safe with a lock alone must not be done.
  [[nodiscard]] bool held() const { return held_; }
  // Removes a file of the folder that was locked, whatever folder has its name by now.
  void remove(const std::string& name) const;

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace fairlead
