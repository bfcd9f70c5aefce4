# Files that become part of the program: the chart library from node_modules, its licences, and our own page.

set(ELLIPTICAL_NODE_MODULES ${PROJECT_SOURCE_DIR}/node_modules)

# elliptical_web_licences(file): the licences of all packages that the minified files contain, each text
# once, below the names of the packages it belongs to.
function(elliptical_web_licences file)
  file(GLOB folders LIST_DIRECTORIES true RELATIVE ${ELLIPTICAL_NODE_MODULES}
       ${ELLIPTICAL_NODE_MODULES}/d3-* ${ELLIPTICAL_NODE_MODULES}/vega*)
  list(APPEND folders delaunator fast-json-patch internmap json-stringify-pretty-compact robust-predicates
       semver topojson-client tslib)
  list(SORT folders)
  foreach(folder ${folders})
    file(GLOB licences ${ELLIPTICAL_NODE_MODULES}/${folder}/LICENSE*)
    if(NOT licences)
      message(FATAL_ERROR "${ELLIPTICAL_NODE_MODULES}/${folder}: its licence is missing (run: tools/setup)")
    endif()
    list(GET licences 0 licence)
    file(READ ${licence} text)
    string(SHA256 key "${text}")
    list(APPEND keys ${key})
    list(APPEND names_${key} ${folder})
    set(text_${key} "${text}")
  endforeach()
  list(REMOVE_DUPLICATES keys)
  set(all "")
  foreach(key ${keys})
    list(JOIN names_${key} ", " names)
    string(STRIP "${text_${key}}" text)
    string(APPEND all "${names}\n\n${text}\n\n\n")
  endforeach()
  string(REPLACE "--" "- -" all "${all}")  # it goes into a comment of HTML
  file(CONFIGURE OUTPUT ${file} CONTENT "${all}" @ONLY)
endfunction()

# elliptical_web_files(target source file...): `source` of `target` takes in these files with .incbin; its
# macro ELLIPTICAL_WEB_<NAME> is the path of the file of that name.
function(elliptical_web_files target source)
  foreach(file ${ARGN})
    if(NOT EXISTS ${file})
      message(FATAL_ERROR "${file} is missing (run: tools/setup)")
    endif()
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} name)
    string(TOUPPER ${name} name)
    list(APPEND definitions ELLIPTICAL_WEB_${name}="${file}")
  endforeach()
  set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES
    COMPILE_DEFINITIONS "${definitions}" OBJECT_DEPENDS "${ARGN}")
endfunction()
