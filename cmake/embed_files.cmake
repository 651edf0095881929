# This script writes OUT: C++ that defines godwit::server::PageFiles() from FILES, a list of names
# separated by commas.
set(arrays)
set(entries)
string(REPLACE "," ";" FILES "${FILES}")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  string(MAKE_C_IDENTIFIER ${name} array)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND arrays "constexpr unsigned char ${array}[] = {${bytes}0};\n")
  string(APPEND entries "    {\"${name}\", {reinterpret_cast<const char*>(${array}), sizeof ${array} - 1}},\n")
endforeach()
file(WRITE ${OUT} "#include \"server/page.h\"

namespace godwit::server {
namespace {

${arrays}
const PageFile kFiles[] = {
${entries}};

}  // namespace

std::span<const PageFile> PageFiles() { return kFiles; }

}  // namespace godwit::server
")
