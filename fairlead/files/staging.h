// A folder beside the final name, in which a file or a folder is made before it gets that name.
//
// 1. The folder is ".NAME.fairlead-XXXXXX"; what is made lies in "new" inside it. While its owner
//    lives it holds a lock on the folder, which the system gives back whatever ends the process.
// 2. The next Staging of the same name removes the folders whose lock nobody holds.
// 3. A commit makes the bytes durable first, then renames, then makes the name durable. The rename
//    is the one moment at which the destination changes.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fairlead {

class Staging {
 public:
  // `target` is the final name of a file or a folder, `function` who writes, for messages. Throws
  // Error(kIo).
  explicit Staging(const std::string& target, std::string function = "write_model");
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging();  // removes what was not committed

  [[nodiscard]] const std::string& folder() const { return content_; }  // to be filled
  [[nodiscard]] const std::string& target() const { return target_; }
  [[nodiscard]] const std::string& name() const { return name_; }  // of the target, in its folder
  [[nodiscard]] const std::string& parent() const { return parent_; }  // the folder of the target
  [[nodiscard]] const std::string& function() const { return function_; }
  [[nodiscard]] std::string path() const { return content_ + "/" + name_; }

  // The file path() gets the name of the target.
  void commit_file();
  // path() and a second file that is found by its name alone: `second` first. Whoever looks between
  // the two renames finds a new one and an old one.
  void commit_pair(const std::string& second);
  // folder() gets the name of the target. Where there is a folder of that name, the two change
  // places in one step, and what was there under other names is there again. Where that cannot be
  // (the target is the working directory, a file system that cannot exchange) files are moved one
  // by one, in the order of `rank_of_file`.
  void commit_folder();
  // The steps of a commit, for what has more to do between them. `name` is of a file in folder().
  void sync_content() const;
  void move(const std::string& name) const;
  void sync_parent() const;

  void discard() noexcept;  // removes the folder; may be called twice

 private:
  void refuse_special() const;
  void make_folder();
  [[nodiscard]] bool lock_folder();

  std::string target_;
  std::string function_;
  std::string parent_;
  std::string name_;
  std::string
      made_in_;  // the parent; the target itself where that is a folder that cannot change places
  std::string outer_;    // ".NAME.fairlead-XXXXXX"; empty once it is gone
  std::string content_;  // "new" in it
  int lock_ = -1;
  pid_t owner_ = 0;  // a forked child does not remove what is its parent's
};

// Data before models, models before what lists them: whoever finds a name finds what it refers to.
[[nodiscard]] int rank_of_file(const std::string& name);

// Whether a name in a folder is that of a staging folder, for whatever target.
[[nodiscard]] bool is_staging_name(const std::string& name);

// Whether this process stands in the folder or below it: it would stand in the old one after an
// exchange.
[[nodiscard]] bool holds_working_directory(const std::string& folder);

// Removes the staging folder where no process holds its lock; whether it is gone.
bool remove_if_dead(const std::string& folder);

// A small file, whole or not at all.
void write_file(const std::string& path, const std::string& bytes, const std::string& function);

}  // namespace fairlead
