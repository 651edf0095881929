#include "cli/options/template_options.h"

#include <filesystem>

#include "base/error.h"
#include "checkpoint/model_folder.h"
#include "text/chat_template.h"

namespace godwit::cli {

void AddTemplateFlags(console::CommandLine& line, ModelOptions& model, std::string& variables) {
  line.Add({.names = "--chat-template",
            .value = "NAME|FILE",
            .help = "the name of one of the model's chat templates, or a Jinja file to use instead "
                    "(the model's only template, or the one called default)"},
           model.chat_template);
  line.Add({.names = "--chat-template-kwargs",
            .value = "JSON",
            .help = "a JSON object of variables for the chat template, such as "
                    "'{\"enable_thinking\": false}'"},
           [&variables](const std::string& value) {
             (void)ParseTemplateVariables(value);  // refuses it before any reading
             variables = value;
           });
}

const char* GivenTemplateFlag(const ModelOptions& model, const std::string& variables) {
  return !model.chat_template.empty() ? "--chat-template"
         : variables != "{}"          ? "--chat-template-kwargs"
                                      : nullptr;
}

bool HasChatTemplate(const ModelOptions& model) {
  if (!std::filesystem::exists(model.folder)) return true;  // loading reports the error
  return LoadChatTemplate(ModelFolder(model.folder).chat_template(model.chat_template), {})
      .has_value();
}

void RequireChatTemplate(const ModelOptions& model, std::string_view need,
                         std::string_view instead) {
  if (HasChatTemplate(model)) return;
  Throw(ErrorKind::kUnsupported,
        "{} has no chat template, which {}: give one with --chat-template FILE, {}", model.folder,
        need, instead);
}

}  // namespace godwit::cli
